import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { array } from '../../db/connection/arrays.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { retireAbsent } from '../../db/deletes/absent.ts';
import { dueRanges, settleRanges } from '../../db/events/ranges.ts';
import { recordEvents } from '../../db/events/record.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { dueRecords, warehouseNow } from '../../db/queue/due.ts';
import { postponeDocuments, usageUnstable } from '../../db/queue/postpone.ts';
import type { TimeRange } from '../../db/readings/ranges.ts';
import { writeDocumentSets } from '../../db/records/write-page.ts';
import {
  type Change,
  columnsOf,
  type Departure,
  type Habits,
  Life,
  type LifeState,
  type Reading,
  slots,
} from './life.ts';
import { expectedOf, type LifeRows, readingsOf, storedOf } from './life-rows.ts';
import { pageOfRecords, writeRecords } from './pages.ts';
import { writeReadings } from './readings.ts';

/** Kinds of reads that run concurrently. Each read has a few moves, and anything may happen between them. */
export const readKinds = [
  // A page of a backfill: requested, answered, written.
  ...(['documents', 'usageData', 'connections', 'readings'] as const),
  // A pass over a listing, after which unlisted records count as absent.
  ...(['documents pass', 'usageData pass', 'connections pass'] as const),
  // A catch-up: due records, the service's answers (usage later than documents), the writes.
  ...(['documents catch-up', 'connections catch-up', 'readings catch-up'] as const),
] as const;
export type ReadKind = (typeof readKinds)[number];

/** A step of a life, at the service or on the way to the warehouse. Steps come in any order. */
export type Step =
  | { readonly do: 'change'; readonly change: Change }
  /** Delivers some of the existing events in this order, possibly again. */
  | { readonly do: 'deliver'; readonly picks: readonly number[] }
  | Begin
  /** Makes the next move of a read that is under way, or all its remaining moves. */
  | { readonly do: 'move'; readonly pick: number; readonly through?: boolean | undefined };

interface Begin {
  readonly do: 'begin';
  readonly read: ReadKind;
  /** How its answers differ from the truth, as far as the habits of the life's service allow. */
  readonly departures?: readonly Departure[] | undefined;
  /** Whether it is written twice, because a worker that seemed to be dead still writes it. */
  readonly twice?: boolean | undefined;
  /** For a catch-up of documents: whether the service lists fewer rows of usage than its total says. */
  readonly partial?: boolean | undefined;
}

export interface History {
  readonly habits: Habits;
  readonly steps: readonly Step[];
}

interface Read {
  readonly kind: ReadKind;
  readonly readAt: string;
  readonly life: Life;
  /** The service's answers at each move. */
  readonly answers: LifeState[];
  readonly departures: readonly Departure[];
  twice: boolean;
  readonly partial: boolean;
  /** Ranges of readings; all readings of the life when absent. */
  readonly ranges?: readonly TimeRange[];
}

const answersOf = (kind: ReadKind): number => (kind === 'documents catch-up' ? 2 : 1);
const asItIs: Departure = { late: 0, hides: false };
const everything = 1_000_000;
const noCap = { rows: everything, percent: 100 };

/** A life on its way into the warehouse. */
class Run {
  readonly life: Life;
  readonly steps: readonly Step[];
  readonly delivered = new Set<number>();
  readonly reads: Read[] = [];

  constructor(life: Life, steps: readonly Step[]) {
    this.life = life;
    this.steps = steps;
  }

  /** The reading of each slot that was read last, and when its read began. */
  readonly newest = new Map<number, Reading & { readonly readAt: string }>();

  note(reading: Reading, readAt: string): void {
    const newest = this.newest.get(reading.slot);
    if (newest === undefined || newest.readAt <= readAt)
      this.newest.set(reading.slot, { ...reading, readAt });
  }

  catchesUp = (kind: ReadKind) => this.reads.some((read) => read.kind === kind);
}

/** Expected and actual rows of the warehouse. */
export interface Compared {
  readonly expected: Partial<LifeRows>;
  readonly stored: Partial<LifeRows>;
}

export interface Played {
  /** After the catch-up of all events. */
  readonly caughtUp: Compared;
  /** After the next backfill of a quiet service. */
  readonly backfilled: Compared;
}

/**
 * Plays histories side by side, step by step. Returns the service's records and the final rows of each. Each
 * has its own records and time of a meter; equal steps share statements.
 */
export async function playHistories(warehouse: Warehouse, histories: readonly History[]): Promise<Played[]> {
  const company = { id: randomUUID(), name: 'Acme' };
  const meterId = randomUUID();
  const runs = histories.map(
    ({ habits, steps }, number) => new Run(new Life({ company, meterId, number }, habits), steps),
  );
  const lives = runs.map(({ life }) => life);
  const pool = new Pool(warehouse, company.id, meterId, runs);
  const ticks = Math.max(0, ...histories.map(({ steps }) => steps.length));
  for (let tick = 0; tick < ticks; tick++) await pool.tick(tick);
  await pool.settle();
  const soon = runs.map(({ life, newest }) => {
    const late = life.habits.answers === 'late' && { readings: readingsOf(life, newest.values()) };
    return rightAtOnce(life, { ...expectedOf(life), ...late });
  });
  const caughtUp = await storedOf(warehouse, lives);
  await pool.backfill();
  const backfilled = await storedOf(warehouse, lives);
  return lives.map((life, at) => ({
    caughtUp: { expected: soon[at] ?? {}, stored: rightAtOnce(life, caughtUp[at]) },
    backfilled: { expected: expectedOf(life), stored: backfilled[at] ?? {} },
  }));
}

/**
 * Selects the rows that must be right once all events are settled: with late answers, only those whose
 * records have a time of change, and of readings those that were read last.
 */
function rightAtOnce({ habits }: Life, rows: Partial<LifeRows> = {}): Partial<LifeRows> {
  if (habits.answers === 'as it is') return rows;
  const { usage: _usage, short: _short, readings, unsettled, ...others } = rows;
  if (habits.answers === 'anyhow') return { unsettled };
  return habits.readingsHaveUpdated ? { ...others, unsettled, readings } : { ...others, unsettled };
}

class Pool {
  readonly #warehouse: Warehouse;
  readonly #companyId: string;
  readonly #meterId: string;
  readonly #runs: readonly Run[];

  constructor(warehouse: Warehouse, companyId: string, meterId: string, runs: readonly Run[]) {
    this.#warehouse = warehouse;
    this.#companyId = companyId;
    this.#meterId = meterId;
    this.#runs = runs;
  }

  async tick(at: number): Promise<void> {
    const beginning: [Run, Begin][] = [];
    const deliveries: [Run, readonly number[]][] = [];
    const moving: [Read, through: boolean][] = [];
    for (const run of this.#runs) {
      const step = run.steps[at];
      if (step?.do === 'change') run.life.change(step.change);
      else if (step?.do === 'begin') beginning.push([run, step]);
      else if (step?.do === 'deliver') {
        deliveries.push([run, step.picks.map((pick) => pick % run.life.events.length)]);
      } else if (step?.do === 'move') {
        const read = run.reads[step.pick % Math.max(1, run.reads.length)];
        if (read !== undefined) moving.push([read, step.through ?? false]);
      }
    }
    await this.#deliver(deliveries);
    await this.#begin(beginning);
    await this.#move(moving);
  }

  /** Delivers all remaining events, the newest first, runs catch-ups, and writes other reads last. */
  async settle(): Promise<void> {
    await this.#finish((kind) => kind.endsWith('catch-up'));
    const late = this.#runs.map((run): [Run, number[]] => {
      const left = run.life.events.map((_, at) => at).filter((at) => !run.delivered.has(at));
      return [run, left.reverse()];
    });
    await this.#deliver(late);
    await this.#catchUp();
    await this.#finish(() => true);
  }

  /** Reads everything again with true answers, including records of events that were missing before. */
  async backfill(): Promise<void> {
    for (const kind of ['connections pass', 'documents pass', 'usageData pass', 'readings'] as const)
      await this.#readAll(kind);
    await this.#catchUp();
  }

  async #catchUp(): Promise<void> {
    for (let rounds = 0; (await this.#pending()) > 0; rounds++) {
      if (rounds > 5) return;
      for (const kind of readKinds.filter((one) => one.endsWith('catch-up'))) await this.#readAll(kind);
    }
  }

  async #readAll(kind: ReadKind): Promise<void> {
    await this.#begin(this.#runs.map((run) => [run, { do: 'begin', read: kind }]));
    await this.#finish((one) => one === kind);
  }

  async #finish(which: (kind: ReadKind) => boolean): Promise<void> {
    for (;;) {
      const moving = this.#runs.flatMap(({ reads }) => reads.find(({ kind }) => which(kind)) ?? []);
      if (moving.length === 0) return;
      await this.#move(moving.map((read) => [read, true]));
    }
  }

  async #deliver(deliveries: readonly [Run, readonly number[]][]): Promise<void> {
    const events = deliveries.flatMap(([run, picks]) =>
      picks.flatMap((pick) => {
        run.delivered.add(pick);
        return run.life.events[pick] ?? [];
      }),
    );
    if (events.length > 0) await recordEvents(this.#warehouse.db, events);
  }

  /** Begins reads. At most one catch-up of each kind runs for an owner. */
  async #begin(beginning: readonly [Run, Begin][]): Promise<void> {
    const free = beginning.filter(([run, { read }]) => !read.endsWith('catch-up') || !run.catchesUp(read));
    if (free.length === 0) return;
    const { db } = this.#warehouse;
    const readAt = await warehouseNow(db);
    const wanted = new Set(free.map(([, { read }]) => read));
    const due = new Set<string>();
    let dueReadings: readonly TimeRange[] = [];
    if (
      ['documents catch-up', 'connections catch-up', 'readings catch-up'].some((kind) =>
        wanted.has(kind as ReadKind),
      )
    ) {
      await db.execute(
        sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
      );
    }
    for (const kind of ['documents', 'connections'] as const) {
      if (!wanted.has(`${kind} catch-up`)) continue;
      for (const id of (await dueRecords(db, kind, this.#companyId, everything)).due) due.add(id);
    }
    if (wanted.has('readings catch-up')) {
      dueReadings = (await dueRanges(db, this.#meterId, everything)).ranges;
    }
    for (const [run, { read: kind, departures = [], twice = false, partial = false }] of free) {
      const { life } = run;
      const read: Read = { kind, readAt, life, answers: [], departures, twice, partial };
      if (kind === 'readings catch-up') {
        const ranges = dueReadings.filter(
          ({ start, end }) => end > life.timeOf(0) && start < life.timeOf(slots),
        );
        if (ranges.length > 0) run.reads.push({ ...read, ranges });
      } else if (
        !kind.endsWith('catch-up') ||
        due.has(kind.startsWith('d') ? life.documentId : life.connectionId)
      ) {
        run.reads.push(read);
      }
    }
  }

  async #move(moving: readonly (readonly [Read, through: boolean])[]): Promise<void> {
    const ending = new Map<string, Read[]>();
    for (const [read, through] of moving) {
      const answered = read.answers.length === answersOf(read.kind);
      if (!answered) this.#answer(read, through);
      if (!answered && !through) continue;
      if (!read.twice) {
        const { reads } = this.#runs[read.life.place.number] as Run;
        reads.splice(reads.indexOf(read), 1);
      }
      read.twice = false;
      const key = `${read.kind} ${read.readAt}`;
      ending.set(key, [...(ending.get(key) ?? []), read]);
    }
    for (const reads of ending.values()) await this.#end(reads[0] as Read, reads);
  }

  #answer({ kind, life, answers, departures }: Read, through: boolean): void {
    do answers.push(life.answer(departures[answers.length] ?? asItIs));
    while (through && answers.length < answersOf(kind));
  }

  /** Writes reads of one kind that began at the same time. */
  async #end({ kind, readAt }: Read, reads: readonly Read[]): Promise<void> {
    const read = { readAt, companyId: this.#companyId, confirms: kind.endsWith('catch-up') };
    if (kind === 'documents catch-up') await this.#catchUpDocuments(readAt, reads);
    else if (kind === 'readings catch-up') await this.#catchUpReadings(readAt, reads);
    else if (kind === 'readings') await this.#writeReadings(readAt, reads);
    else {
      const [listing] = kind.split(' ') as ['documents' | 'usageData' | 'connections'];
      const records = reads.flatMap(({ life, answers: [state] }): readonly { readonly id: string }[] =>
        life[recordsOf[listing]](state as LifeState),
      );
      if (records.length > 0) await writeRecords(this.#warehouse, listing, records, read);
      if (kind === 'connections catch-up') {
        const ids = reads.map(({ life }) => life.connectionId);
        const listed = new Set(records.map(({ id }) => id));
        const notFound = ids.filter((id) => !listed.has(id));
        await settleRecords(this.#warehouse.db, 'connections', ids, readAt, { notFound });
      }
      if (kind.endsWith('pass')) {
        const seen = await this.#seen(listing, reads, records);
        const ofCompany = { resource: listing, companyId: this.#companyId };
        await retireAbsent(
          this.#warehouse.db,
          randomUUID(),
          ofCompany,
          { ids: seen, beganAt: readAt },
          noCap,
        );
      }
    }
  }

  /** Like activities/sweep/documents.ts. */
  async #catchUpDocuments(readAt: string, reads: readonly Read[]): Promise<void> {
    const { db } = this.#warehouse;
    const read = { readAt, companyId: this.#companyId };
    const alive = reads.filter(({ life, answers: [state] }) => life.documents(state as LifeState).length > 0);
    const documents = alive.flatMap(({ life, answers: [state] }) => life.documents(state as LifeState));
    const usage = alive.flatMap(({ life, answers: [, state], partial }) =>
      life.usage(state as LifeState).slice(partial ? 1 : 0),
    );
    const partialIds = alive.flatMap(({ life, partial }) => (partial ? [life.documentId] : []));
    const recordsRead = (records: readonly { readonly id: string }[]) => ({
      page: pageOfRecords(records, read),
      ids: records.map(({ id }) => id),
    });
    if (alive.length > 0) {
      await writeDocumentSets(db, {
        documentIds: documents.map(({ id }) => id),
        partialIds,
        readAt,
        documents: recordsRead(documents),
        usage: usage.length > 0 ? recordsRead(usage) : undefined,
      });
    }
    const ids = reads.map(({ life }) => life.documentId).filter((id) => !partialIds.includes(id));
    const gone = reads.filter((one) => !alive.includes(one)).map(({ life }) => life.documentId);
    const shown = alive.map(({ life }) => life.documentId);
    await settleRecords(db, 'documents', ids, readAt, { notFound: gone, shown });
    if (partialIds.length > 0) await postponeDocuments(db, partialIds, readAt, usageUnstable);
  }

  /** Like activities/sweep/intervals.ts. */
  async #catchUpReadings(readAt: string, reads: readonly Read[]): Promise<void> {
    const { db } = this.#warehouse;
    const ranges = reads.flatMap((read) => read.ranges ?? []);
    await this.#writeReadings(readAt, reads);
    await settleRanges(db, this.#meterId, readAt, ranges);
  }

  /** Writes the readings of the ranges of each read, or else of the whole time of its life. */
  async #writeReadings(readAt: string, reads: readonly Read[]): Promise<void> {
    for (const { life, answers, ranges } of reads) {
      const whole = { start: `${life.timeOf(0)}Z`, end: `${life.timeOf(slots)}Z` };
      for (const range of ranges ?? [whole]) {
        const isWithin = (time: string) => time >= range.start.slice(0, 19) && time < range.end;
        const readings = life
          .readings(answers[0] as LifeState)
          .filter(({ slot }) => isWithin(life.timeOf(slot)));
        for (const reading of readings) this.#runs[life.place.number]?.note(reading, readAt);
        const columns = columnsOf(readings.map((reading) => ({ life, ...reading })));
        await writeReadings(this.#warehouse, this.#meterId, readAt, columns, { range, proof: 'proved' });
      }
    }
  }

  /** Lists the ids that the passes listed, and the ids of lives without such a pass, which must stay. */
  async #seen(
    listing: 'documents' | 'usageData' | 'connections',
    reads: readonly Read[],
    records: readonly { readonly id: string }[],
  ): Promise<string[]> {
    const passing = new Set(reads.map(({ life }) => life));
    const others = this.#runs.map(({ life }) => life).filter((life) => !passing.has(life));
    const listed = records.map(({ id }) => id);
    if (listing === 'documents') return [...listed, ...others.map(({ documentId }) => documentId)];
    if (listing === 'connections') return [...listed, ...others.map(({ connectionId }) => connectionId)];
    const ids = array(
      others.map(({ documentId }) => documentId),
      'uuid',
    );
    const rows = await this.#warehouse.db.execute<{ id: string }>(
      sql`select id from utility.usage_data where document_id = any(${ids})`,
    );
    return [...listed, ...rows.rows.map(({ id }) => id)];
  }

  async #pending(): Promise<number> {
    const result = await this.#warehouse.db.execute<{ n: number }>(
      sql`select count(*)::int as n from metersync.events where outcome = 'pending'`,
    );
    return result.rows[0]?.n ?? 0;
  }
}

const recordsOf = { documents: 'documents', usageData: 'usage', connections: 'connections' } as const;
