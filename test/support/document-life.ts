import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { DeliveredEvent } from '../../contract/delivery.ts';
import { dueRecords, settleRecords, warehouseNow } from '../../db/catch-up.ts';
import type { Warehouse } from '../../db/connect.ts';
import { recordEvents } from '../../db/record/record-events.ts';
import { writeDocumentSets } from '../../db/write/document-sets.ts';
import { delivery, documentEvent } from './events.ts';
import { pageOfRecords, writeRecords } from './pages.ts';

/** What can happen to a document, at the service and on the way to the warehouse, in any order. */
export type Step =
  | { readonly do: 'change'; readonly usage: 'add' | 'edit' | 'remove' | 'keep' }
  | { readonly do: 'delete' }
  /** Some of the events that exist by now, in this order, perhaps not for the first time. */
  | { readonly do: 'deliver'; readonly picks: readonly number[] }
  /** A backfill reads a page that holds it; the page is written by a later step, or when all else is over. */
  | { readonly do: 'readDocument' | 'readUsage' }
  | { readonly do: 'writePage'; readonly pick: number }
  /** The catch-up in its three moves: what is due and the document; its usage; what was learnt. */
  | { readonly do: 'catchUp' };

interface UsageRow {
  readonly id: string;
  readonly usage: string;
  readonly updated: string;
}

interface State {
  readonly updated: string;
  readonly usage: readonly UsageRow[];
  readonly deleted: boolean;
}

interface PageRead {
  readonly readAt: string;
  readonly of: 'documents' | 'usageData';
  readonly state: State;
}

interface CatchUp {
  readonly due: readonly string[];
  readonly readAt: string;
  readonly state: State;
  usage?: State;
}

/** One document that lives at a service of its own, and its way into the warehouse. */
export class DocumentLife {
  readonly id = randomUUID();
  readonly #companyId = randomUUID();
  readonly #warehouse: Warehouse;
  readonly #deletionMovesUpdated: boolean;
  readonly #events: DeliveredEvent[] = [];
  readonly #delivered = new Set<DeliveredEvent>();
  #moves = 0;
  #state: State;
  #reads: PageRead[] = [];
  #catchUp: CatchUp | undefined;

  constructor(warehouse: Warehouse, deletionMovesUpdated: boolean) {
    this.#warehouse = warehouse;
    this.#deletionMovesUpdated = deletionMovesUpdated;
    this.#state = { updated: this.#nextUpdated(), usage: [], deleted: false };
    this.#emit('created');
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'change') this.#change(step.usage);
    else if (step.do === 'delete') this.#delete();
    else if (step.do === 'deliver') await this.#deliver(step.picks);
    else if (step.do === 'readDocument') await this.#read('documents');
    else if (step.do === 'readUsage') await this.#read('usageData');
    else if (step.do === 'writePage') await this.#write(step.pick);
    else await this.#moveCatchUp();
  }

  /** Everything arrives at last, the newest event first, and the catch-up runs until nothing is pending. */
  async settle(): Promise<void> {
    while (this.#catchUp !== undefined) await this.#moveCatchUp();
    const late = this.#events.filter((event) => !this.#delivered.has(event)).reverse();
    if (late.length > 0) await recordEvents(this.#warehouse.db, late);
    for (let rounds = 0; (await this.#pending()) > 0; rounds++) {
      if (rounds > 10) throw new Error('events stay pending');
      await this.#warehouse.db.execute(
        sql`update metersync.events set next_attempt_at = null where record_id = ${this.id}`,
      );
      do await this.#moveCatchUp();
      while (this.#catchUp !== undefined);
    }
    while (this.#reads.length > 0) await this.#write(0);
  }

  /** What the service shows; nothing of a document that is deleted. */
  shown(): object {
    const { updated, usage, deleted } = this.#state;
    if (deleted) return { alive: false, usage: [] };
    return { alive: true, updated, raw: this.#record(this.#state), usage: this.#usageRecords(usage) };
  }

  /** The same, as the warehouse has it. */
  async stored(): Promise<object> {
    const { db } = this.#warehouse;
    const [document] = (
      await db.execute<{ alive: boolean; updated: string; raw: unknown }>(sql`
        select deleted_at is null as alive, raw,
          to_char(updated at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as updated
        from utility.documents where id = ${this.id}::uuid`)
    ).rows;
    const usage = await db.execute<{ raw: { id: string } }>(
      sql`select raw from utility.usage_data where document_id = ${this.id}::uuid and deleted_at is null`,
    );
    const rows = usage.rows.map(({ raw }) => raw).sort((a, b) => a.id.localeCompare(b.id));
    return document?.alive ? { ...document, usage: rows } : { alive: false, usage: rows };
  }

  #nextUpdated(): string {
    this.#moves += 1;
    return `2026-03-01T00:00:00.${String(this.#moves).padStart(6, '0')}`;
  }

  #change(how: 'add' | 'edit' | 'remove' | 'keep'): void {
    if (this.#state.deleted) return;
    const updated = this.#nextUpdated();
    const [first, ...rest] = this.#state.usage;
    const row = (id: string): UsageRow => ({ id, usage: `${this.#moves}.10`, updated });
    let { usage } = this.#state;
    if (how === 'add') usage = [...usage, row(randomUUID())];
    else if (first !== undefined && how === 'edit') usage = [row(first.id), ...rest];
    else if (first !== undefined && how === 'remove') usage = rest;
    this.#state = { updated, usage, deleted: false };
    this.#emit('updated');
  }

  #delete(): void {
    if (this.#state.deleted) return;
    const updated = this.#deletionMovesUpdated ? this.#nextUpdated() : this.#state.updated;
    this.#state = { updated, usage: [], deleted: true };
    this.#emit('deleted');
  }

  #emit(type: 'created' | 'updated' | 'deleted'): void {
    const company = { id: this.#companyId, name: 'Acme' };
    this.#events.push(delivery(documentEvent(type, this.id, this.#state.updated, { company })));
  }

  async #deliver(picks: readonly number[]): Promise<void> {
    const events = picks.map((pick) => this.#events[pick % this.#events.length] as DeliveredEvent);
    for (const event of events) this.#delivered.add(event);
    await recordEvents(this.#warehouse.db, events);
  }

  async #read(of: PageRead['of']): Promise<void> {
    this.#reads.push({ of, readAt: await warehouseNow(this.#warehouse.db), state: this.#state });
  }

  async #write(pick: number): Promise<void> {
    const [read] = this.#reads.splice(pick % Math.max(1, this.#reads.length), 1);
    if (read === undefined) return;
    const { of, readAt, state } = read;
    const records = of === 'documents' ? this.#documentRecords(state) : this.#usageRecords(state.usage);
    await writeRecords(this.#warehouse, of, records, { readAt, companyId: this.#companyId });
  }

  /** As activities/catch-up-documents.ts goes about it. */
  async #moveCatchUp(): Promise<void> {
    const { db } = this.#warehouse;
    const running = this.#catchUp;
    if (running === undefined) {
      const readAt = await warehouseNow(db);
      const due = await dueRecords(db, 'documents', this.#companyId, 500);
      if (due.length > 0) this.#catchUp = { due, readAt, state: this.#state };
      return;
    }
    if (running.usage === undefined) {
      running.usage = this.#state;
      return;
    }
    const { readAt, due, state, usage } = running;
    if (!state.deleted) {
      const read = (records: readonly { readonly id: string }[]) => ({
        page: pageOfRecords(records, { readAt, companyId: this.#companyId }),
        ids: records.map(({ id }) => id),
      });
      const documents = read(this.#documentRecords(state));
      const rows = this.#usageRecords(usage.usage);
      const sets = {
        documentIds: [this.id],
        readAt,
        documents,
        usage: rows.length > 0 ? read(rows) : undefined,
      };
      await writeDocumentSets(db, sets);
    }
    await settleRecords(db, 'documents', due, readAt, state.deleted ? [this.id] : []);
    this.#catchUp = undefined;
  }

  async #pending(): Promise<number> {
    const result = await this.#warehouse.db.execute<{ n: number }>(
      sql`select count(*)::int as n from metersync.events where record_id = ${this.id} and outcome = 'pending'`,
    );
    return result.rows[0]?.n ?? 0;
  }

  #record({ updated, usage }: State) {
    const usageData = [...usage].sort((a, b) => a.id.localeCompare(b.id));
    return { id: this.id, company: this.#companyId, updated, note: `as of ${updated}`, usageData };
  }

  #documentRecords = (state: State) => (state.deleted ? [] : [this.#record(state)]);

  #usageRecords = (usage: readonly UsageRow[]) =>
    usage.map((row) => ({ ...row, document: { id: this.id } })).sort((a, b) => a.id.localeCompare(b.id));
}
