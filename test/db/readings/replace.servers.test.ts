import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DeletesCap } from '../../../contract/deletes-cap.ts';
import { approveDeletes, rejectDeletes, undoDeletes } from '../../../db/deletes/decide.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { cases } from '../../support/cases.ts';
import { forFile } from '../../support/for-file.ts';
import { writeReadings } from '../../support/readings.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

/** A reading at the service. Times are counted in quarters of an hour since midnight. */
interface Reading {
  readonly from: number;
  readonly long: number;
  readonly usage: number;
}

const quarters = 8;
const time = (quarter: number): string =>
  new Date(Date.UTC(2026, 4, 1, 0, quarter * 15)).toISOString().replace('.000', '');

interface Range {
  readonly from: number;
  readonly to: number;
}
const everything: Range = { from: -1_000, to: 1_000 };

const range = fc
  .tuple(fc.nat(quarters - 1), fc.integer({ min: 1, max: 4 }))
  .map(([from, long]): Range => ({ from, to: from + long }));
const reading = fc.record({
  from: fc.nat(quarters - 1),
  long: fc.constantFrom(1, 1, 1, 2, 4),
  usage: fc.integer({ min: 1, max: 5 }),
});

/** Whether a read is answered later than it begins. */
const late = fc.constantFrom(false, false, true);

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('put' as const), reading }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), at: fc.nat(50) }) },
  /** A read begins, and is mostly answered at once: of a range, of what an event announced, or of everything. */
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('begin' as const), range: fc.option(range), late }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('catch up' as const), at: fc.nat(50), late }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('answer' as const), at: fc.nat(50) }) },
  /** What a read showed is written, perhaps again, because a worker crashed after the commit. */
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('write' as const), at: fc.nat(50), again: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), at: fc.nat(50) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('approve' as const, 'reject' as const, 'undo' as const),
      at: fc.nat(50),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

interface Read {
  readonly runId: string;
  readonly readAt: string;
  readonly range: Range;
  /** How many changes the service had when the read began. */
  readonly changes: number;
  readonly answer: readonly Reading[] | null;
}

/** A service with one meter, the events of its changes, and reads that are under way. */
class World {
  readonly meterId = randomUUID();
  readonly #cap: DeletesCap | null;
  readonly #across: boolean;
  #readings: readonly Reading[] = [{ from: 0, long: 1, usage: 1 }];
  #changes = 0;
  #events: readonly (Range & { readonly change: number })[] = [];
  #reads: readonly Read[] = [];
  #runs: readonly string[] = [];

  /** @param across whether listings show readings across the bounds of a range, which the service may leave out */
  constructor(cap: DeletesCap | null, across: boolean) {
    this.#cap = cap;
    this.#across = across;
    this.#events = [{ from: 0, to: 1, change: 0 }];
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'put') return this.#put(step.reading);
    if (step.do === 'begin') return await this.#begin(step.range ?? everything, step.late);
    if (step.do === 'remove') return this.#remove(step.at);
    if (step.do === 'catch up') {
      const event = this.#events[step.at % Math.max(1, this.#events.length)];
      return event === undefined ? undefined : await this.#begin(event, step.late);
    }
    if (step.do === 'approve' || step.do === 'reject' || step.do === 'undo') {
      const runId = this.#runs[step.at % Math.max(1, this.#runs.length)];
      return runId === undefined ? undefined : await this.#decide(step.do, runId);
    }
    const at = step.at % Math.max(1, this.#reads.length);
    const read = this.#reads[at];
    if (read === undefined) return;
    if (step.do === 'answer') this.#reads = this.#reads.with(at, this.#answered(read));
    else {
      this.#reads = this.#reads.filter((_, place) => place !== at);
      if (step.do === 'write') await this.#write(read);
      if (step.do === 'write' && step.again) await this.#write(read);
    }
  }

  /** Ends all reads in any order, reads what events announced, and in the end everything if `whole` is set. */
  async settle(order: readonly number[], whole: boolean): Promise<void> {
    for (let turn = 0; this.#reads.length + this.#events.length > 0; turn++) {
      const at = (order[turn % order.length] ?? 0) % (this.#reads.length + this.#events.length);
      if (at < this.#reads.length) await this.take({ do: 'write', at, again: false });
      else {
        await this.take({ do: 'catch up', at: at - this.#reads.length, late: false });
        await this.take({ do: 'write', at: this.#reads.length - 1, again: false });
      }
    }
    if (!whole) return;
    await this.#begin(everything, false);
    await this.take({ do: 'write', at: this.#reads.length - 1, again: false });
  }

  get listed(): string[] {
    return this.#readings.map(({ from, long, usage }) => `${time(from)} ${long * 900} ${usage}`).toSorted();
  }

  async held(): Promise<string[]> {
    const { rows } = await warehouse.db.execute<{ one: string }>(sql`
      select to_char(start_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' ' || granularity_seconds || ' ' || usage as one
      from utility.intervals where meter_id = ${this.meterId} order by 1`);
    return rows.map(({ one }) => one);
  }

  /** Readings that are held only because somebody decides or decided about them. */
  async decided(): Promise<string[]> {
    const { rows } = await warehouse.db.execute<{ one: string }>(sql`
      select to_char(start_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' ' || granularity_seconds || ' ' || usage as one
      from utility.intervals i
      where meter_id = ${this.meterId}
        and exists (
          select from metersync.deletes d
          where d.meter_id = i.meter_id and state in ('quarantined', 'rejected', 'undone')
            and starts_from < i.start_at + make_interval(secs => granularity_seconds)
            and starts_before > i.start_at)`);
    return rows.map(({ one }) => one);
  }

  /** Readings of a service never overlap, so a new one replaces those of its time. One event announces all. */
  #put(reading: Reading): void {
    const to = reading.from + reading.long;
    const replaced = this.#readings.filter(({ from, long }) => from < to && from + long > reading.from);
    this.#readings = [...this.#readings.filter((one) => !replaced.includes(one)), reading];
    this.#announce({
      from: Math.min(reading.from, ...replaced.map(({ from }) => from)),
      to: Math.max(to, ...replaced.map(({ from, long }) => from + long)),
    });
  }

  /** Nobody trusts an empty listing, so the last reading stays. */
  #remove(at: number): void {
    if (this.#readings.length < 2) return;
    const gone = this.#readings[at % this.#readings.length] as Reading;
    this.#readings = this.#readings.filter((one) => one !== gone);
    this.#announce({ from: gone.from, to: gone.from + gone.long });
  }

  #announce(range: Range): void {
    this.#changes += 1;
    this.#events = [...this.#events, { ...range, change: this.#changes }];
  }

  async #begin({ from, to }: Range, late: boolean): Promise<void> {
    const readAt = await warehouseNow(warehouse.db);
    const read = { runId: randomUUID(), readAt, range: { from, to }, changes: this.#changes, answer: null };
    this.#reads = [...this.#reads, late ? read : this.#answered(read)];
  }

  #answered(read: Read): Read {
    const { from, to } = read.range;
    const answer = this.#readings.filter((one) => {
      const end = one.from + one.long;
      return this.#across ? one.from < to && end > from : one.from >= from && end <= to;
    });
    return { ...read, answer: read.answer ?? answer };
  }

  async #write(read: Read): Promise<void> {
    const { answer, range, readAt, runId, changes } = this.#answered(read);
    const columns = (answer ?? []).toSorted((a, b) => b.from - a.from);
    await writeReadings(
      warehouse,
      this.meterId,
      readAt,
      {
        startAt: columns.map(({ from }) => time(from)),
        endAt: columns.map(({ from, long }) => time(from + long)),
        granularitySeconds: columns.map(() => null),
        usage: columns.map(({ usage }) => String(usage)),
        usageUnits: columns.map(() => 'kWh'),
        quality: columns.map(() => null),
        updated: columns.map(() => null),
        id: columns.map(() => null),
      },
      {
        range: range.from === everything.from ? {} : { start: time(range.from), end: time(range.to) },
        proof: 'proved',
        cap: this.#cap ?? { rows: 1_000, percent: 100 },
        runId,
      },
    );
    this.#runs = [...this.#runs, runId];
    this.#events = this.#events.filter(
      ({ from, to, change }) => change > changes || from < range.from || to > range.to,
    );
  }

  async #decide(what: 'approve' | 'reject' | 'undo', runId: string): Promise<void> {
    const { db } = warehouse;
    if (what === 'approve') await approveDeletes(db, runId);
    else if (what === 'reject') await rejectDeletes(db, runId);
    else await undoDeletes(db, runId);
  }
}

const order = fc.array(fc.nat(50), { minLength: 1, maxLength: 8 });
const isDecision = (step: Step) => step.do === 'approve' || step.do === 'reject' || step.do === 'undo';

test('once each change was read, the warehouse has the readings of the service, whatever order reads are written in', async () => {
  const steps = fc.array(
    step.filter((one) => !isDecision(one)),
    { maxLength: 30 },
  );
  const property = fc.asyncProperty(steps, order, fc.boolean(), async (taken, inOrder, across) => {
    const world = new World(null, across);
    for (const one of taken) await world.take(one);
    await world.settle(inOrder, false);
    // An empty answer removes nothing without a decision.
    const decided = await world.decided();
    expect((await world.held()).filter((one) => !decided.includes(one))).toEqual(
      world.listed.filter((one) => !decided.includes(one)),
    );
    expect(await world.held()).toEqual(expect.arrayContaining(world.listed));
  });
  await fc.assert(property, { numRuns: cases(150, 1_500) });
});

test('once everything was read, the warehouse has the readings of the service and those that somebody keeps', async () => {
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 40 }),
    order,
    fc.boolean(),
    async (taken, inOrder, across) => {
      const world = new World({ rows: 0, percent: 0 }, across);
      for (const one of taken) await world.take(one);
      await world.settle(inOrder, true);
      const [held, decided] = [await world.held(), await world.decided()];
      expect(held).toEqual(expect.arrayContaining(world.listed));
      expect(
        held.filter((one) => !world.listed.includes(one)).filter((one) => !decided.includes(one)),
      ).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: cases(150, 1_500) });
});

test('a decision to keep readings outlives a read that a later one overtook', async () => {
  const meterId = randomUUID();
  const read = async (hours: readonly number[], readAt: string) => {
    const runId = randomUUID();
    const columns = {
      startAt: hours.map((hour) => time(hour * 4)),
      endAt: hours.map((hour) => time(hour * 4 + 4)),
      granularitySeconds: hours.map(() => null),
      usage: hours.map(String),
      usageUnits: hours.map(() => 'kWh'),
      quality: hours.map(() => null),
      updated: hours.map(() => null),
      id: hours.map(() => null),
    };
    const how = { proof: 'proved', cap: { rows: 0, percent: 0 }, runId } as const;
    await writeReadings(warehouse, meterId, readAt, columns, how);
    return runId;
  };
  const now = () => warehouseNow(warehouse.db);
  await read([0, 1, ...Array.from({ length: 30 }, (_, at) => at + 2)], await now());
  await rejectDeletes(warehouse.db, await read([0, 1], await now()));
  const [early, late] = [await now(), await now()];
  await read([0, 1], late);
  await read([0, 1], early);
  const { rows } = await warehouse.db.execute(
    sql`select state, readings::int as readings from metersync.deletes where meter_id = ${meterId}`,
  );
  expect(rows).toEqual([{ state: 'rejected', readings: 30 }]);
});
