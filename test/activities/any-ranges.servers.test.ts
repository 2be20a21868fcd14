import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { recordEvents } from '../../db/events/record.ts';
import { audit } from '../../operations/audit/audit.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { activitiesOn, queues } from '../support/activities.ts';
import { cases } from '../support/cases.ts';
import { delivery, intervalsEvent } from '../support/events.ts';

/** A reading at the service. Times are counted in quarters of an hour since midnight. */
interface Reading {
  readonly id: string;
  readonly from: number;
  readonly long: number;
  readonly usage: number;
  readonly units: string;
  readonly updated: number;
}

const quarters = 8;
const time = (quarter: number): string =>
  new Date(Date.UTC(2026, 4, 1, 0, quarter * 15)).toISOString().slice(0, 19);

const reading: fc.Arbitrary<Reading> = fc.record({
  id: fc.uuid(),
  from: fc.nat(quarters - 1),
  long: fc.constantFrom(1, 1, 1, 4),
  usage: fc.integer({ min: -2, max: 2 }),
  units: fc.constantFrom('kWh', 'kWh', 'kW'),
  updated: fc.integer({ min: 1, max: 5 }),
});

/** A change at the service. `updated` may go back, because older data may be imported again. */
const change = fc.oneof(
  fc.record({ do: fc.constant('add' as const), reading }),
  fc.record({ do: fc.constant('remove' as const), at: fc.nat() }),
  fc.record({
    do: fc.constant('alter' as const),
    at: fc.nat(),
    usage: fc.integer({ min: -2, max: 2 }),
    updated: fc.integer({ min: 1, max: 5 }),
  }),
  fc.record({
    do: fc.constant('import' as const),
    readings: fc.array(reading, { minLength: 1, maxLength: 6 }),
  }),
  fc.record({ do: fc.constant('move' as const), at: fc.nat() }),
);
type Change = typeof change extends fc.Arbitrary<infer C> ? C : never;

/** A read with a change before one of its pages: a catch-up if it has a range, and otherwise a backfill. */
const read = fc.record({
  do: fc.constant('read' as const),
  range: fc.option(fc.tuple(fc.nat(quarters), fc.nat(quarters))),
  before: fc.integer({ min: 1, max: 4 }),
  change: fc.option(change),
});

const history = fc.record({
  perPage: fc.constantFrom(1, 2, 3, 100),
  withIds: fc.boolean(),
  order: fc.constantFrom('ascending' as const, 'descending' as const, 'as it is' as const),
  steps: fc.array(fc.oneof(change, read), { maxLength: 8 }),
});

/** Leaves out equal readings: without ids, nobody can tell them from a reading that two pages repeat. */
function distinct(readings: readonly Reading[]): readonly Reading[] {
  const contents = readings.map(({ id: _, ...content }) => JSON.stringify(content));
  return readings.filter((_, at) => contents.indexOf(contents[at] as string) === at);
}

function changed(readings: readonly Reading[], step: Change): readonly Reading[] {
  if (step.do === 'add') return distinct([...readings, step.reading]);
  if (step.do === 'import') return distinct(step.readings);
  const at = step.at % readings.length;
  const others = readings.filter((_, place) => place !== at);
  const [one] = readings.slice(at, at + 1) as [Reading];
  if (step.do === 'remove') return others.length === 0 ? readings : others;
  if (step.do === 'move') return [...others, one];
  return distinct(readings.with(at, { ...one, usage: step.usage, updated: step.updated }));
}

test('one backfill of a quiet service makes warehouse and service equal, whatever changed between and during reads', async () => {
  const companyId = randomUUID();
  let service: { asked: (asked: Asked) => Reply } = { asked: () => ({ status: 404, json: {} }) };
  const script = (asked: Asked): Reply => service.asked(asked);
  const endpoints = { connections: null, documents: null, usageData: null, meters: null };
  const under = await activitiesOn(script, endpoints);
  const { client } = await setup(script, { endpoints: { ...defaultEndpoints, ...endpoints } });
  const { db } = under.warehouse;
  await db.execute(sql`insert into utility.companies (id, raw) values (${companyId}::uuid, '{}')`);

  const property = fc.asyncProperty(history, async ({ perPage, withIds, order, steps }) => {
    const meterId = randomUUID();
    await db.execute(sql`update utility.meters set deleted_at = now(), deleted_reason = 'absent'`);
    await db.execute(
      sql`insert into utility.meters (id, company_id) values (${meterId}, ${companyId}::uuid)`,
    );
    let readings: readonly Reading[] = [
      { id: randomUUID(), from: 0, long: 1, usage: 1, units: 'kWh', updated: 1 },
    ];
    let pending: { before: number; change: Change } | null = null;
    const sorted = () => {
      const sign = order === 'ascending' ? 1 : -1;
      return order === 'as it is' ? readings : readings.toSorted((a, b) => sign * (a.from - b.from));
    };
    const asked = (asked: Asked): Reply => {
      if (asked.path === '/v2.2/company')
        return pageOf([{ id: companyId, sites: [] }], asked, { key: 'companies', total: 'totalCompanies' });
      if (pending !== null && --pending.before === 0) {
        readings = changed(readings, pending.change);
        pending = null;
      }
      const [start = '', end = '9999'] = ['startDate', 'endDate'].map(
        (name) => asked.query.get(name)?.slice(0, 19) ?? undefined,
      );
      const within = sorted().filter(({ from, long }) => time(from) >= start && time(from + long) <= end);
      const items = within.map(({ id, from, long, usage, units, updated }) => ({
        ...(withIds ? { id } : {}),
        start: time(from),
        end: time(from + long),
        usage: String(usage),
        usageUnits: units,
        updated: `2026-05-0${updated}T00:00:00`,
      }));
      return pageOf(items, asked, { key: 'intervals', total: 'totalIntervals', perPage });
    };
    service = { asked };
    const backfill = async () => {
      const runId = randomUUID();
      await under.run(under.activities.readCompany, { runId, companyId });
    };
    for (const step of steps) {
      if (step.do !== 'read') {
        readings = changed(readings, step);
        continue;
      }
      pending = step.change === null ? null : { before: step.before, change: step.change };
      if (step.range === null) {
        await backfill();
        continue;
      }
      const [from, until] = step.range.toSorted((a, b) => a - b) as [number, number];
      await recordEvents(db, [delivery(intervalsEvent(meterId, time(from), time(until), 0))]);
      await under.run(under.activities.sweepOwners, { owners: queues('intervals', [meterId]) });
    }
    pending = null;
    await backfill();
    const { rows } = await db.execute<{ reading: string }>(sql`
      select concat_ws(' ', (start_at at time zone 'UTC')::text, granularity_seconds, usage_units, usage) as reading
      from utility.intervals where meter_id = ${meterId}`);
    const expected = readings.map(({ from, long, units, usage }) =>
      [time(from).replace('T', ' '), long * 900, units, usage].join(' '),
    );
    expect(rows.map((row) => row.reading).toSorted()).toEqual(expected.toSorted());
    const sides = { warehouse: under.warehouse, service: client, resources: ['intervals'] } as const;
    expect(await audit({ ...sides, concurrency: 1 })).toMatchObject({ differences: 0 });
  });
  await fc.assert(property, { numRuns: cases(25, 500) });
}, 300_000);
