import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { BilledCompany } from '../support/bills.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

/** What a register of a meter shows. One register counts the exported amount, the other the consumed. */
interface Register {
  readonly usage: number | null;
  readonly quality?: string | null;
}
const pair: readonly Register[] = [{ usage: -0.7 }, { usage: 2.0 }];
const sum: readonly Register[] = [{ usage: 1.3 }];

/** Readings that follow one another. */
interface Run {
  readonly from: string;
  readonly count: number;
  readonly seconds: number;
}
const quarters: Run = { from: '2026-03-01Z', count: 96, seconds: 900 };

/** Makes a company with one meter, whose registers show the same amounts at each time. */
async function metered(registers: readonly Register[], runs: readonly Run[], zone = 'UTC') {
  const { db } = warehouse;
  const company = new BilledCompany(warehouse);
  const meterId = randomUUID();
  await company.add({ [meterId]: {} });
  await db.execute(sql`
    insert into ops.site_overrides (site_id, time_zone) values (${company.siteId}::uuid, ${zone})`);
  for (const { from, count, seconds } of runs) {
    await db.execute(sql`select metersync.ensure_interval_month(${from}::timestamptz)`);
    const rows = registers.map((register, ordinal) => ({ quality: 'ACTUAL', ...register, ordinal }));
    await db.execute(sql`
      insert into utility.intervals
        (meter_id, start_at, granularity_seconds, usage_units, ordinal, usage, quality, synced_at)
      select
        ${meterId}, ${from}::timestamptz + n * ${seconds} * interval '1 second', ${seconds}::int, 'kWh',
        ordinal, usage, quality, now()
      from generate_series(0, ${count - 1}::int) n,
        jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (ordinal int, usage numeric, quality text)`);
  }
  return { company, meterId };
}

describe('a meter that shows 2.0 and -0.7 at each quarter-hour of a day', () => {
  const view = async (name: string, order: string) => {
    const { company } = await metered(pair, [quarters]);
    return await company.rows(name, order);
  };

  test('has a row for each reading in interval_readings', async () => {
    const rows = await view('interval_readings', 'start_at, ordinal');
    expect(rows).toHaveLength(192);
    expect(rows.slice(0, 2)).toMatchObject([
      { usage: '-0.7', kw: '-2.800000', ordinal: 0 },
      { usage: '2', kw: '8.000000', ordinal: 1 },
    ]);
  });

  test('has the sum of both in interval_daily, and the power of both together', async () => {
    expect(await view('interval_daily', 'local_date')).toMatchObject([
      {
        usage: '124.8',
        readings: 96,
        estimated_readings: 0,
        doubtful_readings: 0,
        covered_seconds: 86_400,
        expected_readings: '96.00',
        coverage: '1.0000',
        max_kw: '5.200000',
        max_kw_at: '2026-03-01 00:00:00+00',
      },
    ]);
  });

  test('has the sum of both in the comparison with a bill', async () => {
    const { company, meterId } = await metered(pair, [quarters]);
    const day = { start: '2026-03-01', end: '2026-03-01' };
    await company.bill([{ billed: 1, usage: [{ meterId, ...day, usage: '124.8' }] }]);
    expect(await company.rows('bill_interval_comparison', 'period')).toMatchObject([
      { billed_usage: '124.8', interval_usage: '124.8', interval_coverage: '1.0000', difference: '0.0' },
    ]);
  });
});

test('several registers count as one reading even if one register is estimated or has no amount', async () => {
  const registers: readonly Register[] = [
    { usage: -0.7, quality: 'ESTIMATED' },
    { usage: 2.0 },
    { usage: null, quality: null },
  ];
  const { company } = await metered(registers, [quarters]);
  expect(await company.rows('interval_daily', 'local_date')).toMatchObject([
    { usage: '124.8', readings: 96, estimated_readings: 96, coverage: '1.0000', max_kw: '5.200000' },
  ]);
});

/** A usual day, and days of clock changes. Some readings cross midnight, and readings of different lengths overlap. */
test.each([
  ['UTC', '2026-03-01'],
  ['America/New_York', '2026-03-08'],
  ['America/New_York', '2026-11-01'],
  ['America/St_Johns', '2010-11-06'],
  ['Africa/Cairo', '2026-10-30'],
])('in %s around %s registers count like one reading with their sum', async (zone, day) => {
  const runs: Run[] = [
    { from: `${day} 00:00Z`, count: 90, seconds: 900 },
    { from: `${day} 20:30Z`, count: 9, seconds: 3600 },
    { from: `${day} 22:30Z`, count: 2, seconds: 3600 * 30 },
  ];
  const [withPair, withSum] = [await metered(pair, runs, zone), await metered(sum, runs, zone)];
  const orders = {
    interval_daily: 'local_date',
    interval_coverage: 'month',
    interval_gaps: 'gap_start',
    interval_overlaps: 'overlap_start',
    load_profile: 'weekday, hour',
  };
  for (const [view, order] of Object.entries(orders)) {
    const rows = async ({ company }: typeof withSum) =>
      (await company.rows(view, order)).map(({ company_id: _, site_id: _s, meter_id: _m, ...row }) => ({
        ...row,
        ...('covered_seconds' in row && { covered_seconds: Number(row.covered_seconds) }),
        // The parts of readings that cross midnight are rounded.
        ...('usage' in row && { usage: Number(row.usage).toFixed(4), standard_usage: null }),
      }));
    expect([view, await rows(withPair)]).toEqual([view, await rows(withSum)]);
  }
});

test('an overlap names each length once, the shortest first', async () => {
  const { company } = await metered(sum, [
    { from: '2026-03-01 00:00Z', count: 2, seconds: 3600 },
    { from: '2026-03-01 00:15Z', count: 5, seconds: 900 },
  ]);
  expect(await company.rows('interval_overlaps', 'overlap_start')).toMatchObject([
    { granularities: [900, 3600], mixes_resolutions: true },
  ]);
});
