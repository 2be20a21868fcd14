import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { BilledCompany } from '../support/bills.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

afterEach(async () => {
  await warehouse.db.execute(sql`delete from ops.unit_factors where source = 'our own'`);
});

async function companyWith(...meters: readonly { id: string; commodity: string }[]): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(
    Object.fromEntries(meters.map(({ id, commodity }) => [id, { datasourceType: commodity }])),
  );
  return company;
}

async function issuesOf(company: BilledCompany): Promise<unknown[]> {
  await refreshDataIssues(warehouse.db, [company.id], { kinds: ['bills', 'intervals'], today: '2026-03-05' });
  const { rows } = await warehouse.db.execute<{ check_name: string }>(sql`
    select distinct check_name from ops.open_issues
    where company_id = ${company.id}::uuid and check_name <> 'no_time_zone' order by 1`);
  return rows.map((row) => row.check_name);
}

const january = { start: '2026-01-01', end: '2026-01-31' };

/** A spelling, the name in ops.unit_factors, and the amount of 10 of them in the standard unit. */
test.each([
  ['KWH', 'kWh', '10', 'kWh'],
  ['kwh', 'kWh', '10', 'kWh'],
  [' kWh ', 'kWh', '10', 'kWh'],
  ['Kilowatt-Hours', 'kWh', '10', 'kWh'],
  ['MWH', 'MWh', '10000', 'kWh'],
  ['therms', 'thm (US)', '293.001111', 'kWh'],
  ['Therm', 'thm (US)', '293.001111', 'kWh'],
  ['dekatherms', 'Dth (US)', '2930.011111', 'kWh'],
  ['MMBTU', 'MMBtu', '2930.710702', 'kWh'],
  ['gj', 'GJ', '2777.777778', 'kWh'],
  ['ccf', 'CCF', '28.316847', 'cubic m'],
  ['Mcf', 'MCF', '283.168466', 'cubic m'],
  ['m3', 'cubic m', '10', 'cubic m'],
  ['m³', 'cubic m', '10', 'cubic m'],
  ['cu. ft.', 'cubic ft', '0.283168', 'cubic m'],
  ['Gallons', 'gal (US)', '0.037854', 'cubic m'],
  ['KGAL', 'kgal (US)', '37.854118', 'cubic m'],
  ['LBS', 'lb', '4.535924', 'kg'],
] as const)('usage in "%s" is usage in %s', async (spelling, name, amount, standard) => {
  const meter = { id: randomUUID(), commodity: 'GAS' };
  const company = await companyWith(meter);
  await company.bill([
    { billed: 1, usage: [{ meterId: meter.id, ...january, usage: '10', units: spelling }] },
  ]);
  const [usage] = await company.rows('usage', 'first_day');
  expect(usage).toMatchObject({ usage: '10', usage_units: spelling, units: name, standard_units: standard });
  expect(Number(usage?.standard_usage)).toBeCloseTo(Number(amount), 5);
  const [month] = await company.rows('monthly_usage', 'month');
  expect(month).toMatchObject({ original_usage: '10', original_units: spelling, units: standard });
  expect(await issuesOf(company)).toEqual([]);
});

test('months of a meter whose bills spell their unit differently do not split', async () => {
  const meter = { id: randomUUID(), commodity: 'ELECTRICITY' };
  const company = await companyWith(meter);
  const of = (billed: number, start: string, end: string, units: string) => ({
    ...{ billed, cost: '10.00', usage: [{ meterId: meter.id, start, end, usage: '10', units }] },
  });
  await company.bill([
    of(1, '2026-01-01', '2026-01-15', 'KWH'),
    of(2, '2026-01-16', '2026-01-31', ' kwh '),
    of(3, '2026-02-01', '2026-02-28', 'kWh'),
  ]);
  expect(await company.rows('monthly_usage', 'month')).toMatchObject([
    { units: 'kWh', billed_usage: '20', original_usage: '20', original_units: ' kwh ', bills: 2 },
    { units: 'kWh', billed_usage: '10', original_usage: '10', original_units: 'kWh' },
  ]);
  expect(await issuesOf(company)).toEqual([]);
});

test('a factor of a commodity counts for every spelling, and an exact name before another spelling', async () => {
  const [gas, water] = [
    { id: randomUUID(), commodity: 'GAS' },
    { id: randomUUID(), commodity: 'WATER' },
  ];
  const company = await companyWith(gas, water);
  await warehouse.db.execute(sql`
    insert into ops.unit_factors (units, datasource_type, dimension, standard_units, factor, source)
    values ('CCF', 'GAS', 'energy', 'kWh', 30, 'our own'), ('mwh', '', 'energy', 'kWh', 7, 'our own'),
      ('bag', '', 'mass', 'kg', 25, 'our own')`);
  const usage = (meterId: string, units: string) => ({ meterId, ...january, usage: '2', units });
  await company.bill([
    {
      billed: 1,
      usage: [
        usage(gas.id, 'ccf'),
        usage(water.id, 'ccf'),
        usage(gas.id, 'MWh'),
        usage(gas.id, 'mwh'),
        usage(gas.id, ' BAG'),
        usage(gas.id, ' no such unit '),
      ],
    },
  ]);
  const rows = await company.rows('usage', 'standard_usage');
  expect(
    rows.map((row) => [row.usage_units, row.units, Number(row.standard_usage), row.standard_units]),
  ).toEqual([
    [' no such unit ', 'no such unit', 2, 'no such unit'],
    ['ccf', 'CCF', 5.663369, 'cubic m'],
    ['mwh', 'mwh', 14, 'kWh'],
    [' BAG', 'bag', 50, 'kg'],
    ['ccf', 'CCF', 60, 'kWh'],
    ['MWh', 'MWh', 2000, 'kWh'],
  ]);
});

test('readings whose unit is spelled differently on one day are one series', async () => {
  const meter = { id: randomUUID(), commodity: 'ELECTRICITY' };
  const company = await companyWith(meter);
  await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-03-01')`);
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at)
    select ${meter.id}, at, 3600, case when at < '2026-03-02 05:00Z' then 'KWH' else ' kwh' end, 2, 'ACTUAL', now()
    from generate_series('2026-03-01Z'::timestamptz, '2026-03-03T23:00Z', interval '1 hour') at`);
  await company.bill([
    {
      billed: 1,
      usage: [{ meterId: meter.id, start: '2026-03-01', end: '2026-03-03', usage: '0.144', units: 'mwh' }],
    },
  ]);
  const days = await company.rows('interval_daily', 'local_date');
  expect(days.map((day) => [day.usage, day.units, day.max_kw, day.readings, day.coverage])).toEqual(
    Array(3).fill(['48', 'kWh', '2.000000', 24, '1.0000']),
  );
  expect(await company.rows('interval_coverage', 'month')).toMatchObject([
    { usage: '144', units: 'kWh', days_covered: 3, max_kw: '2.000000' },
  ]);
  expect(await company.rows('interval_readings', 'start_at')).toHaveLength(72);
  for (const row of await company.rows('interval_readings', 'start_at'))
    expect(row).toMatchObject({ kw: '2.000000', standard_usage: '2', standard_units: 'kWh', units: 'kWh' });
  expect(await company.rows('interval_gaps', 'gap_start')).toEqual([]);
  expect(await company.rows('load_profile', 'weekday, hour')).toHaveLength(72);
  const [compared] = await company.rows('bill_interval_comparison', 'period');
  expect([Number(compared?.billed_usage), Number(compared?.difference)]).toEqual([144, 0]);
  expect(await issuesOf(company)).toEqual([]);
});

test('demand of demand meters counts in every spelling of its unit', async () => {
  const meter = { id: randomUUID(), commodity: 'ELECTRICITY' };
  const company = await companyWith(meter);
  const demandMeters = ['KW', ' kw', 'Mw'].map((demandUsageUnits, at) => ({
    demandUsage: at === 2 ? 0.5 : at + 1,
    demandUsageUnits,
  }));
  await company.bill([
    { billed: 1, usage: [{ meterId: meter.id, ...january, usage: '10' }], more: { demandMeters } },
  ]);
  expect(await company.rows('usage', 'first_day')).toMatchObject([{ demand_kw: '500.0' }]);
});

test('bills in usd, " USD" and US$ are in USD, and other currencies have their codes', async () => {
  const meter = { id: randomUUID(), commodity: 'ELECTRICITY' };
  const company = await companyWith(meter);
  const sent = ['USD', 'usd', ' USD', 'US$', 'us$', 'cad', 'C$', '€', 'chf', ''];
  await company.bill(
    sent.map((currency, at) => ({
      billed: at,
      cost: '10.00',
      currency,
      usage: [{ meterId: meter.id, ...january, usage: `${at + 1}` }],
      more: { accountNumber: 'A-1' },
    })),
  );
  const bills = await company.rows('bills', 'created');
  expect(bills.map((bill) => bill.currency)).toEqual([
    'USD',
    'USD',
    'USD',
    'USD',
    'USD',
    'CAD',
    'CAD',
    'EUR',
    'CHF',
    null,
  ]);
  const months = await company.rows('monthly_cost', 'month');
  expect(new Set(months.map((month) => month.currency))).toEqual(new Set(['USD', 'CAD', 'EUR', 'CHF', null]));
  expect(months.filter((month) => month.currency === 'USD')).toMatchObject([{ cost: '50.00', bills: 5 }]);
});

test('original_usage is as exact as the bills', async () => {
  const [power, gas] = [
    { id: randomUUID(), commodity: 'ELECTRICITY' },
    { id: randomUUID(), commodity: 'GAS' },
  ];
  const company = await companyWith(power, gas);
  const amounts = ['0.0000001', '0.30000000000000004', '123456789012345678901234567890.5'];
  await company.bill(
    amounts.flatMap((usage, at) => {
      const days = { start: `2026-0${at + 1}-10`, end: `2026-0${at + 2}-09`, usage };
      return [
        { billed: 2 * at, usage: [{ meterId: power.id, ...days }] },
        { billed: 2 * at + 1, usage: [{ meterId: gas.id, ...days, units: 'thm (US)' }] },
      ];
    }),
  );
  await company.rows('monthly_usage', 'month');
  const { rows } = await warehouse.db.execute(sql`
    select meter_id, sum(original_usage) as original, sum(billed_usage) as billed, bool_and(original_usage = billed_usage) as equal
    from analytics.monthly_usage where company_id = ${company.id}::uuid group by 1`);
  const total = '123456789012345678901234567890.80000010000000004';
  expect(rows).toContainEqual({ meter_id: power.id, original: total, billed: total, equal: true });
  expect(rows).toContainEqual(expect.objectContaining({ meter_id: gas.id, original: total, equal: false }));
});
