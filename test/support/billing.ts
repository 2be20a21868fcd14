import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { DeliveredEvent } from '../../contract/event.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply, Script } from '../service/scripted-server.ts';
import type { ActivitiesUnderTest } from './activities.ts';
import { delivery, documentEvent } from './events.ts';
import { shapeOf } from './scripted-service.ts';

/** What a bill's record lists as its usage: nothing, other rows than the usage endpoint, or the same rows. */
export type Lists = 'nothing' | 'others' | 'its usage';

export interface Bill {
  readonly id: string;
  companyId: string;
  updated: string;
  /** A field whose value does not depend on the version of the record. */
  link: string;
  usage: readonly string[];
  readonly lists: Lists;
}

/** A service whose bills a test corrects, deletes and moves. The test decides which of the events arrive. */
export class BillingService {
  companies: string[];
  bills: Bill[] = [];
  /** Returns an answer to send instead of the true answer, if there is one. */
  lie: (asked: Asked) => Reply | undefined = () => undefined;
  /** The present time, because a reconcile reads only what was updated in the last days. */
  readonly #start = Date.now();
  #changes = 0;

  constructor(companies = 1) {
    this.companies = Array.from({ length: companies }, () => randomUUID());
  }

  get company(): string {
    return this.companies[0] ?? '';
  }

  #now(): string {
    return new Date(this.#start + this.#changes++).toISOString().replace('Z', '001');
  }

  add(rows: number, lists: Lists = 'nothing', companyId = this.company): Bill {
    const usage = Array.from({ length: rows }, () => randomUUID());
    const bill = { id: randomUUID(), companyId, updated: this.#now(), link: randomUUID(), usage, lists };
    this.bills.push(bill);
    return bill;
  }

  /** Corrects a bill: `kept` of its rows stay, and new rows replace the others. Returns its event. */
  correct(bill: Bill, kept = 0, now = bill.usage.length): DeliveredEvent {
    const fresh = Array.from({ length: now - kept }, () => randomUUID());
    bill.usage = [...bill.usage.slice(0, kept), ...fresh];
    bill.updated = this.#now();
    return this.#event('updated', bill);
  }

  remove(bill: Bill): DeliveredEvent {
    this.bills = this.bills.filter(({ id }) => id !== bill.id);
    bill.updated = this.#now();
    return this.#event('deleted', bill);
  }

  #event(type: 'updated' | 'deleted', { id, companyId, updated }: Bill): DeliveredEvent {
    return delivery(documentEvent(type, id, updated, { company: { id: companyId } }));
  }

  script: Script = (asked) => this.lie(asked) ?? this.truth(asked);

  truth(asked: Asked): Reply {
    const [, , kind, scope, id = ''] = asked.path.split('/');
    if (asked.path === '/v2.2/company') return { json: this.companies.map((id) => ({ id })) };
    const ofCompany = this.bills.filter(({ companyId }) => companyId === id);
    const one = this.bills.find((bill) => bill.id === scope || bill.id === id);
    if (kind === 'document' && scope === 'company') return pageOf(ofCompany.map(record), asked);
    if (kind === 'document') return one === undefined ? gone : { json: record(one) };
    if (kind === 'usage' && scope === 'company')
      return pageOf(ofCompany.flatMap(usageOf), asked, shapeOf('usageData'));
    if (kind === 'usage') return one === undefined ? gone : pageOf(usageOf(one), asked, shapeOf('usageData'));
    if (kind === 'connection') return pageOf([], asked, shapeOf('connections'));
    if (kind === 'meter') return pageOf([], asked, shapeOf('meters'));
    return pageOf([], asked, { key: 'intervals', total: 'totalIntervals' });
  }
}

const gone: Reply = { status: 404, json: { detail: 'Not found.' } };

function record({ id, companyId, updated, link, usage, lists }: Bill) {
  const listed = {
    nothing: {},
    // Rows that only the record lists, as in some versions. Their ids change with the bill.
    others: { usageData: [{ id: `${id.slice(0, 24)}${updated.slice(14, 26).replace(/\D/g, '0')}` }] },
    'its usage': { usageData: usage.map((row) => ({ id: row, usage: '1' })) },
  };
  return { id, company: { id: companyId }, created: '2026-01-01T00:00:00', updated, link, ...listed[lists] };
}

const usageOf = ({ id, updated, usage }: Bill) =>
  usage.map((row) => ({ id: row, usage: '1', updated, document: { id } }));

/** Backfills all companies of the service; returns how the run ended. */
export async function backfill({ run, activities }: ActivitiesUnderTest, companies: readonly string[]) {
  const runId = randomUUID();
  await run(activities.beginRun, { runId, kind: 'full' });
  for (const companyId of companies) await run(activities.readCompany, { runId, companyId });
  return { runId, state: await run(activities.concludeRun, { runId }) };
}

/** Lists the ids of the live rows of a table. */
export async function alive({ warehouse }: ActivitiesUnderTest, table: 'usage_data' | 'documents') {
  const { rows } = await warehouse.db.execute<{ id: string }>(
    sql`select id from utility.${sql.identifier(table)} where deleted_at is null order by id`,
  );
  return rows.map(({ id }) => id);
}
