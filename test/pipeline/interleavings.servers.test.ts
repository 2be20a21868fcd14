import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { type DeliveredEvent, type EventGroup, eventKinds } from '../../contract/event.ts';
import { Failure } from '../../contract/failures.ts';
import { limits } from '../../contract/limits.ts';
import { type CatchUpKind, catchUpKinds } from '../../contract/names.ts';
import { array } from '../../db/connection/arrays.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { warehouseFailure } from '../../db/connection/failures.ts';
import { unknownNeighbours } from '../../db/events/neighbours.ts';
import {
  dueRanges,
  isKnownMeter,
  nextPiece,
  nextWidth,
  type RangeProgress,
  settleRanges,
} from '../../db/events/ranges.ts';
import { recordEvents } from '../../db/events/record.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { type DueRecords, dueOwners, dueRecords, pendingAmong, warehouseNow } from '../../db/queue/due.ts';
import { postponeUnknown } from '../../db/queue/postpone.ts';
import type { TimeRange } from '../../db/readings/ranges.ts';
import { introduceCompany, isConfirmedCompany } from '../../db/records/companies.ts';
import { writeDocumentSets } from '../../db/records/write-page.ts';
import { createGroupCommit } from '../../receiver/group-commit.ts';
import type { StartRequest } from '../../receiver/starts.ts';
import { RecordingLog } from '../receiver/listening.ts';
import { ManualClock } from '../receiver/manual-clock.ts';
import { cases } from '../support/cases.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from '../support/events.ts';
import { type Change, columnsOf, Life, slots } from '../support/life.ts';
import { expectedOf, storedOf } from '../support/life-rows.ts';
import { pageOfRecords, writeRecords } from '../support/pages.ts';
import { writeReadings } from '../support/readings.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** A step of the service. */
interface Step {
  readonly change?: Change;
  /** Which event somebody who can sign forges, about a company or meter that the service does not have. */
  readonly forge?: 'document' | 'deletion' | 'connection' | 'readings';
  /** Which existing event the service delivers, possibly again. */
  readonly deliver?: number | 'newest';
  /** For how many statements of other work the service then rests. */
  readonly rest?: number;
  /** Whether the service waits until readings of its events are being fetched. */
  readonly fetched?: boolean;
}

/** The outcome of a start or of a fetch: it is done, it is done but its answer is lost, or done twice. */
type Fate = 'returns' | 'fails' | 'repeats';

/** A receiver, Temporal, a worker and a service around a warehouse. The test schedules each step. */
class World {
  readonly life: Life;
  /** Ids of forged companies and meters, and of their events. */
  readonly forged = new Set<string>();
  readonly #forgeries: DeliveredEvent[] = [];
  readonly #warehouse: Warehouse;
  readonly #turn: (label: string) => Promise<unknown>;
  readonly #fates: Iterator<Fate>;
  readonly #clock = new ManualClock();
  readonly #commit: ReturnType<typeof createGroupCommit>;
  /** The number of requests for pieces of readings that the service has answered. */
  #fetches = 0;
  readonly #started = new Set<string>();
  readonly #applying: Promise<void>[] = [];
  #sweeping: Promise<void> | undefined;

  constructor(warehouse: Warehouse, turn: (label: string) => Promise<unknown>, fates: Iterator<Fate>) {
    this.#warehouse = warehouse;
    this.#turn = turn;
    this.#fates = fates;
    const place = { company: { id: randomUUID(), name: 'Acme' }, meterId: randomUUID(), number: 0 };
    const habits = {
      deletionMovesUpdated: false,
      recordsListSites: false,
      readingsHaveUpdated: true,
      receiverAheadSeconds: 0,
      answers: 'as it is' as const,
    };
    this.life = new Life(place, habits);
    this.#commit = createGroupCommit({
      clock: this.#clock,
      log: new RecordingLog(),
      limits,
      start: async (request) => await this.#start(request),
    });
  }

  async play(steps: readonly Step[]): Promise<void> {
    const answers: Promise<void>[] = [];
    const { life } = this;
    for (const { change, deliver, forge, rest = 0, fetched = false } of steps) {
      const before = this.#fetches;
      if (forge !== undefined) answers.push(this.#deliver(this.#forgery(forge)));
      if (change !== undefined) life.change(change);
      if (deliver === 'newest') answers.push(this.#deliver(life.events.at(-1)));
      else if (deliver !== undefined) answers.push(this.#deliver(life.events[deliver % life.events.length]));
      await this.#turn('what the service does next');
      await this.#clock.turn();
      await this.#rest(rest);
      for (let look = 1; fetched && this.#fetches === before && look <= 100; look++) {
        await this.#clock.advance(10);
        await setTimeout(1);
      }
    }
    for (const event of [...this.life.events, ...this.#forgeries]) answers.push(this.#deliver(event));
    let answered = false;
    const all = Promise.all(answers).then(() => {
      answered = true;
    });
    while (!answered) {
      await this.#turn('time passes');
      await this.#clock.advance(200);
      await this.#rest(1);
    }
    await all;
    await this.#commit.drain();
    await Promise.all(this.#applying);
    await this.#sweeping;
    // Each minute a sweep is started, whatever was lost. Forged events use up their attempts.
    for (let minute = 1; (await this.#isPending()) && minute <= 30; minute++) await this.#sweep();
  }

  #forgery(of: NonNullable<Step['forge']>): DeliveredEvent {
    const id = randomUUID();
    this.forged.add(id);
    const at = '2026-03-01T00:00:00.000001';
    const names = { company: { id, name: 'Forged' }, site: { id: randomUUID(), name: 'Nowhere' } };
    const event = delivery(
      of === 'readings'
        ? intervalsEvent(id, '2026-01-01T00:00:00', '2026-01-02T00:00:00', 96)
        : of === 'connection'
          ? { ...connectionEvent('created', randomUUID(), at, 'PENDING'), ...names }
          : documentEvent(of === 'document' ? 'created' : 'deleted', randomUUID(), at, names),
    );
    this.#forgeries.push(event);
    return event;
  }

  /** Makes all work due that backs off. */
  async #makeDue(): Promise<void> {
    await patiently(() =>
      this.#warehouse.db.execute(
        sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
      ),
    );
  }

  /** Waits about as long as this many statements of other work take. A turn itself takes no time. */
  async #rest(statements: number): Promise<void> {
    for (let left = statements; left > 0; left--) await warehouseNow(this.#warehouse.db);
  }

  /** Delivers an event until it is acknowledged. */
  async #deliver(event: DeliveredEvent | undefined): Promise<void> {
    if (event === undefined) return;
    while ((await this.#commit.accept(event)) !== 'durable') await this.#turn('a delivery is refused');
  }

  async #start({ workflowId, group }: StartRequest): Promise<void> {
    const outcome = this.#fates.next().value;
    await this.#turn(`the start of a group ${outcome}`);
    if (!this.#started.has(workflowId)) {
      this.#started.add(workflowId);
      this.#applying.push(this.#applyEvents(group, outcome === 'repeats'));
    }
    // Temporal has the event, but the receiver does not know that.
    if (outcome === 'fails') throw new Error('14 UNAVAILABLE');
  }

  /**
   * Does the same as workflows/events.ts. A worker that is killed after recording a group repeats it, and one
   * that is killed before or during the drain leaves its events to the sweep.
   */
  async #applyEvents(group: EventGroup, repeats: boolean): Promise<void> {
    const { db } = this.#warehouse;
    const record = () => patiently(() => recordEvents(db, group.events, { drains: true }));
    await this.#turn('a group is recorded');
    let { mayWait } = await record();
    if (repeats) {
      await this.#turn('the group is recorded again');
      ({ mayWait } = await record());
    }
    const fate = this.#fates.next().value;
    await this.#turn(`a drain ${fate}`);
    const ids = group.events.map(({ id }) => id);
    if (mayWait && fate !== 'fails') await this.#drain(ids);
    if (fate === 'repeats') await this.#drain(ids);
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
    });
  }

  /** Does the same as the activity `drain`. Reads of owners that the service does not know fail. */
  async #drain(ids: readonly string[]): Promise<void> {
    for (const { kind, owner, records, now, closed } of await pendingAmong(this.#warehouse.db, ids)) {
      if (this.forged.has(owner)) continue;
      const killed = this.#fates.next().value === 'fails';
      const due = { readAt: now, due: records, deleted: [], closed };
      await this.#readOwner(eventKinds[kind].plural, owner, due, killed);
    }
  }

  /** Does the same as workflows/sweep.ts, long after the events were recorded. */
  async #sweep(): Promise<void> {
    await this.#turn('time has passed');
    await this.#makeDue();
    for (const kind of catchUpKinds) {
      await this.#turn(`what is due of ${kind}`);
      const owners = await patiently(() => dueOwners(this.#warehouse.db, kind, 10));
      for (const owner of owners) {
        await patiently(async () => {
          if (this.forged.has(owner)) await this.#refuse(kind, owner);
          else await this.#readOwner(kind, owner);
        });
      }
    }
  }

  async #isPending(): Promise<boolean> {
    const { rowCount } = await this.#warehouse.db.execute(
      sql`select from metersync.journal where outcome = 'pending' limit 1`,
    );
    return rowCount !== 0;
  }

  /** Reads records of an owner; a worker that is killed has written them and settles nothing. */
  async #readOwner(kind: CatchUpKind, owner: string, records?: DueRecords, killed = false): Promise<void> {
    if (kind === 'intervals') await this.#fetch(owner);
    else await this.#read(kind, owner, records, killed);
  }

  /** Does the same as activities/gates.ts, for an owner that the service does not have. */
  async #refuse(kind: CatchUpKind, owner: string): Promise<void> {
    const { db } = this.#warehouse;
    await this.#turn(`the service does not know whose ${kind} are asked for`);
    const isKnown = kind === 'intervals' ? isKnownMeter : isConfirmedCompany;
    expect(await isKnown(db, owner)).toBe(false);
    await postponeUnknown(db, kind, owner, '404');
  }

  /** Does the same as `readNeighbours`, for a service that lists neither companies nor meters. */
  async #introduce(kind: Exclude<CatchUpKind, 'intervals'>, companyId: string, ids: readonly string[]) {
    const { db } = this.#warehouse;
    const { companies } = await unknownNeighbours(db, kind, companyId, ids);
    for (const id of companies) await introduceCompany(db, id);
  }

  /** Does the same as activities/sweep/documents.ts and connections.ts. */
  async #read(
    kind: Exclude<CatchUpKind, 'intervals'>,
    companyId: string,
    records: DueRecords | undefined,
    killed: boolean,
  ): Promise<void> {
    const { db } = this.#warehouse;
    const { life } = this;
    const { readAt, due } = records ?? (await dueRecords(db, kind, companyId, 100));
    const read = { readAt, companyId, confirms: true };
    await this.#turn(`the service shows ${kind}`);
    const state = life.current;
    if (kind === 'connections') {
      await this.#turn('connections are written');
      await writeRecords(this.#warehouse, 'connections', life.connections(state), read);
      await this.#introduce(kind, companyId, due);
      if (!killed) await settleRecords(db, kind, due, readAt);
      return;
    }
    await this.#turn('the service shows usage');
    const rows = life.usage(life.current);
    await this.#turn('documents are written');
    const page = (records: readonly { readonly id: string }[]) => ({
      page: pageOfRecords(records, read),
      ids: records.map(({ id }) => id),
    });
    const [document] = life.documents(state);
    if (document !== undefined) {
      const usage = rows.length > 0 ? page(rows) : undefined;
      await writeDocumentSets(db, { documentIds: [document.id], readAt, documents: page([document]), usage });
    }
    await this.#introduce(kind, companyId, due);
    if (!killed)
      await settleRecords(db, kind, due, readAt, document === undefined ? { notFound: due } : { shown: due });
  }

  /**
   * Does the same as activities/sweep/intervals.ts. A worker that is killed before it noted a piece reads
   * the piece again, and a worker that is killed before its heartbeat begins the meter again.
   */
  async #fetch(meterId: string): Promise<void> {
    const { db } = this.#warehouse;
    const { readAt, ranges, granularity } = await dueRanges(db, meterId, 50);
    let beganAt: string | undefined = readAt;
    for (const range of ranges) {
      let at: RangeProgress | null = { from: range.start, width: 1 };
      while (at !== null) {
        const { piece, next } = await nextPiece(db, range, at, granularity, pieceReadings);
        let fate: Fate | undefined;
        let held = 0;
        do {
          held = await this.#writeReadings(meterId, piece, beganAt);
          beganAt = undefined;
          fate = this.#fates.next().value;
          if (fate === 'repeats') return await this.#fetch(meterId);
        } while (fate === 'fails');
        at = next === null ? null : { from: next, width: nextWidth(at.width, held, pieceReadings) };
      }
    }
    await this.#turn('ranges are settled');
    await settleRanges(db, meterId, readAt, ranges);
  }

  async #writeReadings(meterId: string, { start, end }: TimeRange, beganAt?: string): Promise<number> {
    const { life } = this;
    const readAt = beganAt ?? (await warehouseNow(this.#warehouse.db));
    await this.#turn('the service shows readings');
    this.#fetches += 1;
    const asked = (time: string) => time >= start.slice(0, time.length) && time < end;
    const readings = life.readings(life.current).filter(({ slot }) => asked(life.timeOf(slot)));
    await this.#turn('readings are written');
    const columns = columnsOf(readings.map((reading) => ({ life, ...reading })));
    const how = { range: { start, end }, proof: 'proved' } as const;
    await writeReadings(this.#warehouse, meterId, readAt, columns, how);
    return readings.length;
  }
}

/** Retries as Temporal does, for example after a deadlock. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const failure = warehouseFailure(error);
      if (!(failure instanceof Failure) || failure.action !== 'retry' || attempt === 20) throw error;
    }
  }
}

/** A piece has two readings of a quarter of an hour, so a wide range is fetched in two pieces. */
const pieceReadings = 2;

const readings: fc.Arbitrary<Change> = fc.record({
  of: fc.constant('readings' as const),
  slot: fc.nat(slots - 1),
  wide: fc.nat(slots - 1),
  value: fc.nat(9),
});
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    of: fc.constant('document' as const),
    how: fc.constantFrom(...(['add', 'edit', 'remove', 'site', 'delete', 'restore'] as const)),
    silent: fc.boolean(),
  }),
  fc.record({
    of: fc.constant('connection' as const),
    how: fc.constant('status' as const),
    silent: fc.boolean(),
  }),
  readings,
);
const forge = fc.constantFrom(...(['document', 'deletion', 'connection', 'readings'] as const));
const steps: fc.Arbitrary<Step[]> = fc.oneof(
  // Anything changes, and the events arrive at any time.
  {
    weight: 2,
    arbitrary: fc.array(
      fc.oneof(
        { weight: 4, arbitrary: fc.record({ change, rest: fc.nat(4) }) },
        { weight: 4, arbitrary: fc.record({ deliver: fc.nat(7), rest: fc.nat(4) }) },
        { weight: 1, arbitrary: fc.record({ forge, rest: fc.nat(4) }) },
      ),
      { maxLength: 5 },
    ),
  },
  // Readings change and their events arrive while the readings of earlier events are fetched.
  {
    weight: 1,
    arbitrary: fc.array(
      fc.record({ change: readings, deliver: fc.constant('newest' as const), fetched: fc.boolean() }),
      { minLength: 2, maxLength: 4 },
    ),
  },
);
const fate = fc.constantFrom<Fate[]>('returns', 'returns', 'fails', 'repeats');

const run = fc.tuple(fc.scheduler(), steps, fc.infiniteStream(fate));
type Run = typeof run extends fc.Arbitrary<infer R> ? R : never;

/** The number of runs that are compared together, because a comparison costs the same for one run. */
const runsTogether = 30;

/** A database with its share of the runs. */
class Lane {
  readonly #warehouse: Warehouse;
  readonly #seed: number;

  constructor(warehouse: Warehouse, seed: number) {
    this.#warehouse = warehouse;
    this.#seed = seed;
  }

  async play(numRuns: number): Promise<void> {
    const runs = fc.sample(run, { seed: this.#seed, numRuns });
    for (let from = 0; from < runs.length; from += runsTogether) {
      const lives: Life[] = [];
      for (const [at, one] of runs.slice(from, from + runsTogether).entries()) {
        lives.push(await this.#live(one).catch((error) => this.#shrink(from + at, error)));
      }
      const different = await this.#differences(lives);
      for (const [at, error] of different) await this.#shrink(from + at, error);
      await this.#empty();
    }
  }

  async #live([scheduler, taken, fates]: Run): Promise<Life> {
    const turn = (label: string) => scheduler.schedule(Promise.resolve(), label);
    const world = new World(this.#warehouse, turn, fates[Symbol.iterator]());
    await scheduler.waitFor(world.play(taken));
    const left = await this.#warehouse.db.execute(sql`
      select count(*)::int as pending from metersync.events where outcome = 'pending'`);
    expect(left.rows).toEqual([{ pending: 0 }]);
    const { db } = this.#warehouse;
    const forged = array([...world.forged], 'text');
    // The connection is never deleted, so its company is known once it was read.
    const companies = await db.execute(sql`select id::text as id from utility.companies
      where id::text = any(${forged}) or id = ${world.life.place.company.id}::uuid`);
    expect(companies.rows).toEqual([{ id: world.life.place.company.id }]);
    const counts = await db.execute(sql`select count(*)::int as n from metersync.events
      where outcome = 'missing' and (company_id::text = any(${forged}) or record_id = any(${forged}))`);
    expect(counts.rows).toEqual([{ n: world.forged.size }]);
    for (const table of ['documents', 'connections', 'sites']) {
      const live = await db.execute(sql`select from ${sql.raw(`utility.${table}`)}
        where company_id::text = any(${forged}) and deleted_at is null`);
      expect(live.rowCount).toBe(0);
    }
    return world.life;
  }

  async #differences(lives: readonly Life[]): Promise<Map<number, unknown>> {
    const stored = await storedOf(this.#warehouse, lives);
    const different = new Map<number, unknown>();
    for (const [at, life] of lives.entries()) {
      try {
        expect(stored[at]).toEqual(expectedOf(life));
      } catch (error) {
        different.set(at, error);
      }
    }
    const missing = await this.#warehouse.db.execute(
      sql`select meter_id, missing from metersync.interval_ledger where not isempty(missing)
        and meter_id = any(${array(
          lives.map(({ place }) => place.meterId),
          'text',
        )})`,
    );
    if (different.size === 0) expect(missing.rows).toEqual([]);
    return different;
  }

  async #empty(): Promise<void> {
    for (const table of ['journal', 'event_payloads'])
      await this.#warehouse.db.execute(sql.raw(`delete from metersync.${table}`));
  }

  /** Plays a failed run again by itself, and shrinks it. */
  async #shrink(at: number, error: unknown): Promise<never> {
    const alone = fc.asyncProperty(run, async (one) => {
      // Rows that a failed run left must not make the next run fail.
      await this.#empty();
      for (const [, difference] of await this.#differences([await this.#live(one)])) throw difference;
    });
    await fc.assert(alone, { seed: this.#seed, path: String(at), interruptAfterTimeLimit: 60_000 });
    throw error;
  }
}

const warehouses: (Warehouse & { drop(): Promise<void> })[] = [];
/** The number of databases. While the run in one database waits for Postgres, the run in the other works. */
const lanes = 2;
const runsPerLane = cases(80, 1_020) / lanes;
const seed = Number(process.env.SEED ?? 20_261_121);
for (let lane = 0; lane < lanes; lane++) warehouses.push(await createWarehouse());
afterAll(async () => {
  for (const warehouse of warehouses) await warehouse.drop();
});

test(`in any order of turns, every acknowledged event is settled without a wake-up (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  await Promise.all(warehouses.map((warehouse, at) => new Lane(warehouse, seed + at).play(runsPerLane)));
});
