import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { BilledCompany } from '../support/bills.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

async function companyWith(meters: Readonly<Record<string, object>>): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(meters);
  return company;
}
const january = { start: '2026-01-01', end: '2026-01-31' };

test('bill_meters has a row for each meter of a bill, with names, numbers, usage and the cost per unit', async () => {
  const [water, power] = [randomUUID(), randomUUID()];
  const company = await companyWith({
    [water]: { datasourceType: 'WATER', identifiers: [{ name: 'ACCOUNT', value: 'W-9' }] },
    [power]: {
      identifiers: [
        { name: 'POD', value: 'P-1' },
        { name: 'METER', value: 'E-77' },
      ],
    },
  });
  const more = { accountNumber: 'A-1', utilityCompany: 'City Power', invoiceId: 'I-1' };
  const [id, unmetered] = await company.bill([
    {
      billed: 1,
      cost: '100.00',
      usage: [
        { meterId: power, ...january, usage: '150' },
        { meterId: power, ...january, usage: '50' },
        { meterId: power, ...january, usage: '9', units: 'kW' },
        { meterId: water, ...january, usage: '2', units: 'gal (US)' },
        { meterId: water, ...january, usage: '3', units: 'no such unit' },
      ],
      more,
    },
    { billed: 2, cost: '10.00', usage: [{ meterId: null, ...january, usage: '40' }], more },
  ]);
  const january31 = { first_day: '2026-01-01', last_day: '2026-01-31' };
  const named = { company: 'Acme', account_number: 'A-1', provider: 'City Power', invoice_id: 'I-1' };
  const rows = await company.rows('bill_meters', 'meter_number');
  expect(rows).toMatchObject([
    {
      ...named,
      ...january31,
      bill_id: id,
      site: 'Main street',
      meter_id: power,
      meter_number: 'E-77',
      commodity: 'ELECTRICITY',
      usage: '200',
      units: 'kWh',
      cost: '50.00',
      cost_per_unit: '0.250000',
    },
    // Usage in two units cannot be summed.
    { ...named, meter_number: 'W-9', usage: null, units: null, cost: '50.00', cost_per_unit: null },
    { ...named, bill_id: unmetered, meter_id: null, commodity: null, usage: '40', cost_per_unit: '0.250000' },
  ]);
  const costs = await company.rows<{ cost: string }>('bill_costs', 'bill_id, meter_id');
  expect(costs.map(({ cost }) => cost).sort()).toEqual(['10.00', '50.00', '50.00']);
});

test('meters have their numbers, addresses, accounts, and first and last day with data', async () => {
  const [collected, billed, read, silent] = ['collected', 'billed', 'read', 'silent'].map(
    (name) => `${name}/${randomUUID()}`,
  ) as [string, string, string, string];
  const company = await companyWith({
    [collected]: { identifiers: [{ name: 'METER', value: 'E-1' }], address: '1 Main St' },
    [billed]: {},
    [read]: { isTracked: false },
    [silent]: {},
  });
  await writeRecords(
    warehouse,
    'connections',
    [
      {
        id: randomUUID(),
        status: 'CONNECTED',
        datasource: 'City Power',
        accounts: [{ id: 'a', accountNumber: 'A-9', meters: [collected] }],
      },
    ],
    { companyId: company.id },
  );
  const more = { accountNumber: 'B-1', utilityCompany: 'Old Power' };
  const gone = randomUUID();
  await company.bill([
    {
      billed: 1,
      usage: [
        { meterId: collected, ...january, usage: '1' },
        { meterId: billed, ...january, usage: '1' },
      ],
      more,
    },
    {
      id: gone,
      billed: 2,
      usage: [{ meterId: billed, start: '2030-01-01', end: '2030-01-31', usage: '1' }],
      more,
    },
  ]);
  const [next] = await company.bill([{ billed: 3, usage: [] }]);
  await company.bill([
    {
      id: gone,
      billed: 4,
      usage: [{ meterId: billed, start: '2030-01-01', end: '2030-01-31', usage: '1' }],
      more: { ...more, revisedDocumentId: next },
    },
  ]);
  await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-03-01')`);
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, synced_at)
    select ${read}, at::timestamptz, 900, 'kWh', 1, now()
    from unnest(array['2026-03-01T12:00:00Z', '2026-03-05T12:00:00Z']) as at`);
  const days = { first_day: '2026-01-01', last_day: '2026-01-31', billed_until: '2026-01-31' };
  const here = { company: 'Acme', site: 'Main street', commodity: 'ELECTRICITY', time_zone: 'UTC' };
  expect(await company.rows('meters', 'meter_id')).toMatchObject([
    // A superseded bill does not count as data.
    { ...here, ...days, meter_id: billed, account_number: 'B-1', provider: 'Old Power', address: null },
    {
      ...here,
      ...days,
      meter_id: collected,
      meter_number: 'E-1',
      address: '1 Main St',
      account_number: 'A-9',
      provider: 'City Power',
      last_reading_at: null,
    },
    {
      ...here,
      meter_id: read,
      is_tracked: false,
      first_day: '2026-03-01',
      last_day: '2026-03-05',
      billed_until: null,
    },
    { ...here, meter_id: silent, first_day: null, last_day: null, account_number: null },
  ]);
});

test('year_on_year compares only months that bills cover completely in both years', async () => {
  const [whole, begun] = [`whole/${randomUUID()}`, `begun/${randomUUID()}`];
  const company = await companyWith({ [whole]: {}, [begun]: {} });
  const month = (meterId: string, start: string, end: string, usage: string, billed: number) => ({
    billed,
    cost: `${Number(usage) / 10}.00`,
    usage: [{ meterId, start, end, usage }],
  });
  await company.bill([
    month(whole, '2025-03-01', '2025-03-31', '100', 1),
    month(whole, '2026-03-01', '2026-03-31', '120', 2),
    month(begun, '2025-03-11', '2025-03-31', '100', 3),
    month(begun, '2026-03-01', '2026-03-31', '900', 4),
    // This month has no bill of the year before, so it is not compared.
    month(whole, '2026-04-01', '2026-04-30', '100', 5),
  ]);
  // To read a view of months computes them; year_on_year compares what was computed.
  await company.rows('monthly_usage', 'month');
  expect(await company.rows('year_on_year', 'measure desc, month')).toMatchObject([
    {
      company: 'Acme',
      site: 'Main street',
      meter_id: whole,
      month: '2026-03-01',
      measure: 'usage',
      units: 'kWh',
      amount: '120',
      amount_year_before: '100',
      change: '20',
      relative_change: '0.2000',
    },
    {
      measure: 'cost',
      units: 'USD',
      amount: '12.00',
      amount_year_before: '10.00',
      relative_change: '0.2000',
    },
  ]);
});

test('bills_as_of fails for a time before the warehouse had any bill, and says since when it has some', async () => {
  const company = await companyWith({});
  const ask = (at: string) =>
    warehouse.pool.query('select bill_id from analytics.bills_as_of($1, $2)', [at, company.id]);
  expect((await ask('2000-01-01')).rows).toEqual([]);
  const [id] = await company.bill([{ billed: 1, cost: '1.00', usage: [] }]);
  const { rows } = await warehouse.db.execute<{ since: string }>(sql`
    select to_char(first_synced_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US"Z"') as since
    from utility.documents where id = ${id}::uuid`);
  const since = rows[0]?.since ?? '';
  await expect(ask('2000-01-01')).rejects.toThrow(
    `the warehouse knows no bills before ${since}: it read the first of them then`,
  );
  await expect(warehouse.pool.query(`select from analytics.bills_as_of('2000-01-01')`)).rejects.toThrow(
    'the warehouse knows no bills before',
  );
  expect((await ask(since)).rows).toEqual([{ bill_id: id }]);
});

test('first_day and last_day are the days that a bill covers, and service_end_date is the date that the service sent', async () => {
  const meterId = randomUUID();
  const company = await companyWith({ [meterId]: {} });
  const of = (billed: number, start: string, end: string) => ({
    billed,
    cost: '1.00',
    usage: [{ meterId, start, end, usage: '1' }],
    more: { accountNumber: 'A', startDate: start, endDate: end },
  });
  await company.bill([of(1, '2026-01-01', '2026-02-01'), of(2, '2026-02-01', '2026-03-01')]);
  const days = [
    { first_day: '2026-01-01', last_day: '2026-01-31', period_days: 31 },
    { first_day: '2026-02-01', last_day: '2026-03-01', period_days: 29 },
  ];
  const ends = ['2026-02-01', '2026-03-01'];
  const bills = await company.rows('bills', 'first_day');
  expect(bills).toMatchObject(days.map((row, at) => ({ ...row, service_end_date: ends[at] })));
  expect(await company.rows('usage', 'first_day')).toMatchObject(days);
});

test('usage in a standard unit is rounded after it is multiplied by the factor', async () => {
  const meterId = randomUUID();
  const company = await companyWith({ [meterId]: { datasourceType: 'GAS' } });
  await company.bill([
    { billed: 1, usage: [{ meterId, ...january, usage: '1.234', units: 'thm (US)' }] },
    {
      billed: 2,
      usage: [{ meterId, start: '2026-02-01', end: '2026-02-28', usage: '1.5', units: 'gal (US)' }],
    },
  ]);
  const usage = await company.rows<{ standard_usage: string }>('usage', 'first_day');
  for (const { standard_usage: amount } of usage)
    expect(amount.split('.')[1]?.length ?? 0).toBeLessThanOrEqual(9);
  const months = await company.rows<{ usage: string; original_usage: string }>('monthly_usage', 'month');
  expect(months.map((row) => Number(row.original_usage))).toEqual([1.234, 1.5]);
});

test('a bill that only moved to another account is reported as moved, not as corrected', async () => {
  const company = await companyWith({});
  const id = randomUUID();
  const of = (billed: number, cost: string, accountNumber: string) => ({
    id,
    billed,
    cost,
    usage: [],
    more: { accountNumber },
  });
  await company.bill([of(1, '5.00', 'A')]);
  await company.bill([of(2, '5.00', 'B')]);
  await company.bill([of(3, '6.00', 'C')]);
  expect(await company.rows('bill_corrections', 'changed_at')).toMatchObject([
    { change: 'moved', fields: ['account_number'], cost_change: '0.00', company: 'Acme' },
    { change: 'corrected', fields: ['cost', 'account_number'], cost_change: '1.00' },
  ]);
});

test('a gap of a day or two is only information, and a longer gap says what it may cost', async () => {
  const meterId = `meter/${randomUUID()}`;
  const company = await companyWith({ [meterId]: {} });
  const of = (billed: number, start: string, end: string) => ({
    billed,
    cost: '3100.00',
    usage: [{ meterId, start, end, usage: '31' }],
  });
  await company.bill([
    of(1, '2025-01-01', '2025-01-31'),
    of(2, '2025-02-03', '2025-03-05'),
    of(3, '2025-05-06', '2025-06-05'),
  ]);
  await refreshDataIssues(warehouse.db, [company.id], { kinds: ['bills'], today: '2025-06-10' });
  const { rows } = await warehouse.db.execute(sql`
    select severity, sentence, may_cost, currency from ops.open_issues
    where company_id = ${company.id}::uuid and check_name = 'bill_gap' order by may_cost desc nulls last`);
  expect(rows).toEqual([
    {
      severity: 'warning',
      sentence: 'No bill covers 2025-03-06 to 2025-05-05 (61 days: about 2 bills, some 6,100 USD).',
      may_cost: '6100.00',
      currency: 'USD',
    },
    {
      severity: 'info',
      sentence: 'No bill covers 2025-02-01 to 2025-02-02 (2 days).',
      may_cost: null,
      currency: null,
    },
  ]);
});

test('the availability of a month is NULL until the month is over', async () => {
  const meterId = randomUUID();
  const company = await companyWith({ [meterId]: {} });
  const { rows } = await warehouse.db.execute<{ start: string; end: string }>(sql`
    select date_trunc('month', current_date - 40)::date::text as start, current_date::text as end`);
  const { start = '', end = '' } = rows[0] ?? {};
  await company.bill([
    { billed: 1, cost: '1.00', usage: [{ meterId, start, end, usage: '1' }], more: { billDate: end } },
  ]);
  const months = await company.rows<{ availability: string | null }>('statement_availability', 'month');
  expect(months.at(0)?.availability).toBe('1.0000');
  expect(months.at(-1)).toMatchObject({ availability: null, meters_billed: 1, site: 'Main street' });
});

test('a connection without any bill is late once its first bill should have come', async () => {
  const company = await companyWith({});
  const connection = (created: string) => ({
    id: randomUUID(),
    status: 'CONNECTED',
    created,
    datasource: 'City Power',
    accounts: [],
  });
  const { rows } = await warehouse.db.execute<{ long: string; lately: string }>(sql`
    select (current_date - 50)::text || 'T00:00:00' as long, (current_date - 5)::text || 'T00:00:00' as lately`);
  const { long = '', lately = '' } = rows[0] ?? {};
  await writeRecords(warehouse, 'connections', [connection(long), connection(lately)], {
    companyId: company.id,
  });
  // The first bill is expected 47 days after the connection was created.
  expect(await company.rows('freshness', 'next_bill_expected_on')).toMatchObject([
    {
      company: 'Acme',
      is_late: true,
      days_late: 3,
      utility_published_until: null,
      cause_of_lateness: 'utility',
    },
    { is_late: false, days_late: null, cause_of_lateness: null },
  ]);
});
