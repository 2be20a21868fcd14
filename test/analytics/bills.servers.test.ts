import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { recordEvents } from '../../db/events/record.ts';
import { BilledCompany, type BillSaid } from '../support/bills.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { blocksTouched } from '../support/plans.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

async function newCompany(meters: Readonly<Record<string, object>> = {}): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(meters);
  return company;
}

const bill = (billed: number, revisedDocumentId: string | null = null, id = randomUUID()): BillSaid => ({
  id,
  billed,
  cost: `${billed}.00`,
  usage: [],
  more: { revisedDocumentId, startDate: '2026-01-01', endDate: '2026-01-31', accountNumber: 'A-1' },
});
const ids = (rows: readonly Record<string, unknown>[]) => rows.map((row) => row.bill_id).sort();

describe('bills that count', () => {
  test('include only the last bill of a chain of links', async () => {
    const company = await newCompany();
    const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(2, c, b), bill(3, null, c)]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([c]);
    const all = await company.rows('bills_all', 'created');
    expect(all).toMatchObject([
      { bill_id: a, is_effective: false, reason: 'superseded', superseded_by: c },
      { bill_id: b, is_effective: false, reason: 'superseded', superseded_by: c },
      { bill_id: c, is_effective: true, reason: null, superseded_by: null },
    ]);
  });

  test('include a superseded bill again when the link to its successor is cleared', async () => {
    const company = await newCompany();
    const [a, b] = [randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(2, null, b)]);
    await company.bill([{ ...bill(1, null, a), billed: 3 }]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([a, b].sort());
  });

  test('do not include a deleted bill, but its predecessor or its successor instead', async () => {
    const company = await newCompany();
    const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(2, null, b)]);
    const deletion = delivery(
      documentEvent('deleted', b, '2026-06-01T00:00:00', { company: { id: company.id } }),
    );
    await recordEvents(warehouse.db, [deletion]);
    expect(await company.rows('bills_all', 'created')).toMatchObject([
      { bill_id: a, is_effective: true },
      { bill_id: b, is_effective: false, reason: 'deleted' },
    ]);
    await warehouse.db.execute(
      sql`update utility.documents set raw = jsonb_set(raw, '{revisedDocumentId}', to_jsonb(${c}::text)) where id = ${b}::uuid`,
    );
    await company.bill([bill(4, null, c)]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([c]);
  });

  test('do not include a bill that is superseded by a bill that was not read yet', async () => {
    const company = await newCompany();
    const unseen = randomUUID();
    await company.bill([bill(1, unseen)]);
    expect(await company.rows('bills_all', 'created')).toMatchObject([
      { is_effective: false, superseded_by: unseen },
    ]);
  });

  test('include the newest bill of a ring of links, and no bill that leads into the ring', async () => {
    const company = await newCompany();
    const [a, b, c, d] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(3, c, b), bill(2, b, c), bill(4, d, d)]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([b, d].sort());
  });

  test('can be read with odd values in any field', async () => {
    const company = await newCompany();
    const odd = {
      startDate: '2026-02-30',
      endDate: { day: 1 },
      billDate: 'soon',
      currentCharges: 'much',
      totalCharges: 7.5,
      lineItems: ['free', { totalCharge: [] }],
      isFlagged: 'yes',
      revisedDocumentId: 5,
    };
    const usage = { meterId: 'm', start: '0001-01-01', end: '9999-12-31', usage: '1' };
    await company.bill([{ billed: 1, usage: [usage], more: odd }]);
    expect(await company.rows('bills', 'bill_id')).toMatchObject([
      { cost: '7.5', cost_source: 'total_charges', boundary_rule: 'one_day', is_flagged: null },
    ]);
    expect(await company.rows('bill_line_items', 'seq')).toMatchObject([
      { amount: null },
      { amount: null, is_current: true },
    ]);
    expect(await company.rows('monthly_cost', 'month')).toMatchObject([{ month: '9999-12-01', cost: '7.5' }]);
  });
});

describe('periods', () => {
  const period = async (...dates: { start: string; end: string }[]) => {
    const company = await newCompany({});
    await company.bill(
      dates.map((one, billed) => ({
        billed,
        usage: [{ ...one, meterId: 'm', usage: '1' }],
        more: { startDate: one.start, endDate: one.end, accountNumber: 'A-1' },
      })),
    );
    const shown = (rows: Record<string, unknown>[]) => rows.map((row) => [row.period, row.boundary_rule]);
    const bills = shown(await company.rows('bills', 'created'));
    expect(shown(await company.rows('usage', 'created'))).toEqual(bills);
    return bills;
  };

  test('keep a shared day if the next bill is for another commodity', async () => {
    const company = await newCompany({});
    const of = (billed: number, start: string, end: string, units: string, datasourceType: string) => ({
      billed,
      cost: '31.00',
      usage: [{ meterId: 'm', start, end, usage: '310', units, more: { datasourceType } }],
      more: { startDate: start, endDate: end, accountNumber: 'A-1' },
    });
    await company.bill([
      of(1, '2026-01-01', '2026-01-31', 'kWh', 'ELECTRICITY'),
      of(2, '2026-01-15', '2026-02-14', 'cubic m', 'WATER'),
      of(3, '2026-01-31', '2026-02-28', 'kWh', 'ELECTRICITY'),
    ]);
    const expected = [
      ['[2026-01-01,2026-01-31)', 'shared_day_to_next'],
      ['[2026-01-15,2026-02-15)', 'end_inclusive'],
      ['[2026-01-31,2026-03-01)', 'end_inclusive'],
    ];
    for (const view of ['usage', 'bills']) {
      const rows = await company.rows(view, 'created');
      expect(rows.map((row) => [row.period, row.boundary_rule])).toEqual(expected);
    }
    const months = await company.rows('monthly_usage', 'units, month');
    expect(
      months.map((row) => [row.units, row.month, Number(row.billed_usage), row.days_overlapped]),
    ).toEqual([
      ['cubic m', '2026-01-01', 170, 0],
      ['cubic m', '2026-02-01', 140, 0],
      ['kWh', '2026-01-01', expect.closeTo(310 + 310 / 29, 4), 0],
      ['kWh', '2026-02-01', expect.closeTo(310 - 310 / 29, 4), 0],
    ]);
  });

  test('are marked if they have one day, swapped dates or impossible dates', async () => {
    expect(await period({ start: '2026-01-05', end: '2026-01-05' })).toEqual([
      ['[2026-01-05,2026-01-06)', 'one_day'],
    ]);
    expect(await period({ start: '2026-01-31', end: '2026-01-01' })).toEqual([
      ['[2026-01-01,2026-02-01)', 'dates_swapped'],
    ]);
    expect(await period({ start: '1900-01-01', end: '2026-01-01' })).toEqual([
      ['[2026-01-01,2026-01-02)', 'one_day'],
    ]);
  });
});

describe('usage', () => {
  test('is signed, so exclusions and exports are subtracted, and generation is separate', async () => {
    const company = await newCompany({
      m: {},
      out: { netMeteringType: 'EXPORT' },
      sun: { netMeteringType: 'GENERATION' },
    });
    const of = (meterId: string, more: object = {}) => ({
      meterId,
      start: '2026-01-01',
      end: '2026-01-31',
      usage: '31',
      more,
    });
    await company.bill([
      {
        billed: 1,
        usage: [of('m'), of('m', { exclusion: true }), of('out'), of('sun'), of('m', { usageUnits: 'MWh' })],
      },
    ]);
    const signs = await company.rows('usage', 'meter_id, signed_usage');
    expect(signs.map((row) => [row.meter_id, row.signed_usage])).toEqual([
      ['m', '-31'],
      ['m', '31'],
      ['m', '31000'],
      ['out', '-31'],
      ['sun', '0'],
    ]);
    expect(await company.rows('monthly_by_site', 'month')).toMatchObject([
      { usage: '30969.000000', units: 'kWh', is_complete: true },
    ]);
  });

  test('subtracts a negative export or exclusion once, and keeps negative generation separate', async () => {
    const company = await newCompany({
      m: {},
      out: { netMeteringType: 'EXPORT' },
      sun: { netMeteringType: 'GENERATION' },
    });
    const of = (meterId: string, usage: string, more: object = {}) => ({
      meterId,
      start: '2026-01-01',
      end: '2026-01-31',
      usage,
      more,
    });
    const excluded = of('m', '-5', { exclusion: true });
    await company.bill([{ billed: 1, usage: [of('m', '31'), excluded, of('out', '-7'), of('sun', '-9')] }]);
    const signs = await company.rows('usage', 'meter_id, usage');
    expect(signs.map((row) => [row.meter_id, row.sign, row.signed_usage])).toEqual([
      ['m', 1, '-5'],
      ['m', 1, '31'],
      ['out', 1, '-7'],
      ['sun', 0, '0'],
    ]);
    const months = await company.rows('monthly_usage', 'meter_id');
    expect(months.map((row) => [row.meter_id, row.billed_usage, row.generated_usage])).toEqual([
      ['m', '26', null],
      ['out', '-7', null],
      ['sun', '0', '-9'],
    ]);
  });

  test('of a site is listed together with its cost by commodity and month, each once and with names', async () => {
    const company = await newCompany({ e: {}, g: { datasourceType: 'GAS' }, w: { datasourceType: 'WATER' } });
    const of = (meterId: string, units: string, usage: string) => ({
      meterId,
      start: '2026-01-01',
      end: '2026-01-31',
      usage,
      units,
    });
    await company.bill([
      { billed: 1, cost: '100.00', usage: [of('e', 'kWh', '310'), of('e', 'KW', '9')] },
      { billed: 2, cost: '40.00', usage: [of('g', 'CCF', '10'), of('g', 'kWh', '31')] },
      { billed: 3, cost: '7.00', usage: [of('w', 'cubic m', '5')] },
      { billed: 4, cost: '9.00', currency: 'EUR', usage: [of('w', 'cubic m', '1')] },
    ]);
    const rows = await company.rows('monthly_by_site', 'commodity, currency nulls last, units');
    expect(rows).toMatchObject(Array(5).fill({ company: 'Acme', site: 'Main street', month: '2026-01-01' }));
    expect(
      rows.map((row) => [
        row.commodity,
        row.units,
        row.usage === null ? null : Number(row.usage),
        row.currency,
        row.cost,
      ]),
    ).toEqual([
      ['ELECTRICITY', 'kWh', 310, 'USD', '100.00'],
      ['GAS', 'cubic m', 28.316847, 'USD', '40.00'],
      ['GAS', 'kWh', 31, null, null],
      ['WATER', 'cubic m', expect.any(Number), 'EUR', '9.00'],
      ['WATER', null, null, 'USD', '7.00'],
    ]);
  });

  test('is rounded if amounts are divided', async () => {
    const company = await newCompany({ m: {} });
    await company.bill([
      {
        billed: 1,
        usage: [{ meterId: 'm', start: '2026-01-01', end: '2026-01-30', usage: '1', units: 'thm (US)' }],
      },
    ]);
    await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-01-01')`);
    const meter = `${company.id}/i`;
    await writeRecords(
      warehouse,
      'meters',
      [{ id: meter, site: company.siteId, datasourceType: 'ELECTRICITY' }],
      {
        companyId: company.id,
      },
    );
    await warehouse.db.execute(sql`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, synced_at)
      values (${meter}, '2026-01-05 00:00Z', 420, 'thm (US)', 1.7, now())`);
    const places = async (view: string, ...columns: string[]) => {
      const rows = await company.rows(view, 'company_id');
      return rows.flatMap((row) =>
        columns.map((column) => `${row[column] ?? ''}`.split('.')[1]?.length ?? 0),
      );
    };
    const figures = [
      ...(await places('monthly_usage', 'extrapolated_usage', 'original_usage')),
      ...(await places('interval_readings', 'kw')),
      ...(await places('interval_daily', 'max_kw')),
      ...(await places('load_profile', 'average_kw', 'max_kw', 'min_kw')),
    ];
    expect(figures.length).toBeGreaterThan(5);
    for (const count of figures) expect(count).toBeLessThanOrEqual(6);
  });

  test('has the peak of the demand meters of v2.2 in their unit, without contracted capacity', async () => {
    const company = await newCompany({ m: {}, n: {}, gas: { datasourceType: 'GAS' } });
    const [own, other, burnt, odd] = Array.from({ length: 4 }, () => randomUUID());
    const of = (meterId: string, id: string | undefined, more: object = {}) => ({
      meterId,
      start: '2026-01-01',
      end: '2026-01-31',
      usage: '31',
      more: { id, ...more },
    });
    const demand = (
      demandUsage: unknown,
      demandUsageUnits: string,
      usageDataIds: unknown,
      more: object = {},
    ) => ({
      demandUsage,
      demandUsageUnits,
      usageDataIds,
      demandType: 'PEAK',
      ...more,
    });
    await company.bill([
      {
        billed: 1,
        usage: [of('m', own, { billedDemand: '900' }), of('n', other), of('gas', burnt)],
        more: {
          demandMeters: [
            demand('7.5', 'kW', [own]),
            demand(0.009, 'MW', [own]),
            demand('999', 'kVA', [own]),
            demand('5000', 'kW', [own], { demandType: 'CONTRACT' }),
            demand('6000', 'kW', [own], { demandType: 'Ucap' }),
            demand('12', 'kVA', [other]),
            demand('3', 'kVAR', [], { demandType: null }),
          ],
        },
      },
      { billed: 2, usage: [of('odd', odd)], more: { demandMeters: ['much', demand('x', 'kW', [odd]), {}] } },
    ]);
    const peaks = async (view: string, order: string) =>
      (await company.rows(view, order)).map((row) => [row.peak_demand, row.peak_demand_units]);
    expect(await peaks('monthly_usage', 'meter_id')).toEqual([
      [null, null],
      ['9.000', 'kW'],
      ['12', 'kVA'],
      [null, null],
    ]);
  });

  test('is NULL for a month without bills, and counts a day of two bills from the newer bill', async () => {
    const company = await newCompany({});
    const of = (billed: number, start: string, end: string, usage: string) => ({
      billed,
      usage: [{ meterId: 'm', start, end, usage }],
    });
    await company.bill([
      of(1, '2026-01-01', '2026-01-31', '310'),
      of(2, '2026-01-22', '2026-01-31', '200'),
      of(3, '2026-04-16', '2026-04-30', '15'),
    ]);
    const months = await company.rows('monthly_usage', 'month');
    expect(months).toMatchObject([
      {
        month: '2026-01-01',
        usage: '410.000000',
        billed_usage: '510',
        days_covered: 31,
        days_overlapped: 10,
        bills: 2,
      },
      { month: '2026-02-01', usage: null, billed_usage: null, days_covered: 0, coverage: '0.0000', bills: 0 },
      { month: '2026-03-01', usage: null, days_covered: 0 },
      { month: '2026-04-01', usage: '15', days_covered: 15, coverage: '0.5000', is_complete: false },
    ]);
    expect(Number(months[3]?.extrapolated_usage)).toBe(30);
  });

  test('does not estimate days of an estimated bill that a newer bill covers', async () => {
    const company = await newCompany();
    const of = (billed: number, start: string, isEstimated: boolean) => ({
      billed,
      usage: [{ meterId: 'm', start, end: '2026-01-31', usage: '31', more: { isEstimated } }],
    });
    await company.bill([of(1, '2026-01-01', true), of(2, '2026-01-11', false)]);
    expect(await company.rows('monthly_usage', 'month')).toMatchObject([
      { days_covered: 31, days_overlapped: 21, estimated_days: 10 },
    ]);
  });

  test('has no invented months after the present month, or between bills that a wrong date sets ten years apart', async () => {
    const company = await newCompany();
    const of = (billed: number, meterId: string, start: string) => ({
      billed,
      usage: [{ meterId, start, end: start, usage: '1' }],
    });
    const ahead = await warehouse.db.execute<{ first: string; ahead: string }>(sql`
      select (date_trunc('month', current_date) - interval '3 months')::date::text as first,
        (date_trunc('month', current_date) + interval '5 years')::date::text as ahead`);
    const { first = '', ahead: later = '' } = ahead.rows[0] ?? {};
    await company.bill([
      of(1, 'late', first),
      of(2, 'late', later),
      of(3, 'misread', '2013-01-01'),
      of(4, 'misread', '9999-12-31'),
      of(5, 'misread', '2023-02-01'),
    ]);
    const months = await company.rows('monthly_usage', 'month');
    const monthsOf = (meter: string) =>
      months.filter((row) => row.meter_id === meter).map((row) => row.month);
    expect(monthsOf('misread')).toEqual(['2013-01-01', '2023-02-01', '9999-12-01']);
    const { rows } = await warehouse.db.execute<{ month: string }>(sql`
      select generate_series(${first}::date, ${first}::date + interval '3 months', '1 month')::date::text as month`);
    expect(monthsOf('late')).toEqual([...rows.map(({ month }) => month), later]);
  });

  test.each([
    ['300000-01-01', '300000-01-31'],
    ['4714-11-24 BC', '5874897-12-31'],
  ])(
    'has no dates if they run from %s to %s, which are impossible years, and other months are listed',
    async (start, end) => {
      const company = await newCompany();
      const of = (dates: { start: string; end: string }) => ({ ...dates, meterId: 'm', usage: '31' });
      await company.bill([
        { billed: 1, cost: '9.00', usage: [of({ start, end })] },
        { billed: 2, cost: '8.00', usage: [of({ start: '2026-01-01', end: '2026-01-31' })] },
      ]);
      const others = ['2026-01-01', null].map((month) => ({ month, billed_usage: '31' }));
      expect(await company.rows('monthly_usage', 'month')).toMatchObject(others);
      const costs = await company.rows('monthly_cost', 'month');
      expect(costs.reduce((sum, { cost }) => sum + Number(cost), 0)).toBe(17);
      expect(await company.rows('statement_availability', 'month')).not.toEqual([]);
      await refreshDataIssues(warehouse.db, [company.id]);
      const { rows } = await warehouse.db.execute(
        sql`select check_name from ops.data_issues where company_id = ${company.id}::uuid and check_name = 'bad_dates'`,
      );
      expect(rows).toHaveLength(1);
    },
  );

  test('of a record without a meter counts in addition to records of other accounts and commodities', async () => {
    const company = await newCompany();
    const of = (billed: number, accountNumber: string | null, usage: string, more: object = {}) => ({
      billed,
      usage: [{ meterId: null, start: '2026-01-01', end: '2026-01-31', usage, more }],
      more: { accountNumber },
    });
    await company.bill([
      of(1, 'A', '7'),
      of(2, 'B', '8'),
      of(3, 'B', '9'),
      of(4, null, '1'),
      of(5, null, '2'),
      of(6, 'B', '100', { datasourceType: 'GAS' }),
    ]);
    expect(await company.rows('monthly_by_site', 'commodity')).toMatchObject([
      { commodity: 'GAS', usage: '100', coverage: '1.0000', is_complete: true },
      { commodity: null, usage: '19.000000', coverage: '1.0000', is_complete: false },
    ]);
  });
});

describe('a bill that says nothing about itself', () => {
  const january = { meterId: 'm', start: '2026-01-01', end: '2026-01-31', usage: '500' };

  test.each([
    [[true], true],
    [[false, true], true],
    [[false, undefined], false],
    [[undefined], null],
    [['maybe'], null],
  ])('is estimated as its usage says: %j means %s', async (said, expected) => {
    const company = await newCompany();
    const usage = said.map((isEstimated) => ({ ...january, more: { isEstimated } }));
    const ids = await company.bill([
      { billed: 1, usage },
      { billed: 2, usage: [] },
    ]);
    // The usage of the second bill is only listed as usage, and not on its document.
    const listed = usage.map(({ more }) => ({ ...more, id: randomUUID(), document: { id: ids[1] } }));
    const readAt = new Date().toISOString();
    await writeRecords(warehouse, 'usageData', listed, { companyId: company.id, readAt });
    expect(await company.rows('bills', 'created')).toMatchObject(
      ids.map((id) => ({ bill_id: id, is_estimated: expected })),
    );
  });

  test('is estimated as of a time if its document said so then', async () => {
    const company = await newCompany();
    const id = randomUUID();
    for (const isEstimated of [true, false]) {
      const usageData = [{ usage: '500', usageUnits: 'kWh', isEstimated }];
      await company.bill([{ id, billed: isEstimated ? 1 : 2, usage: [], more: { usageData } }]);
    }
    expect(await company.rows('bills', 'created')).toMatchObject([{ is_estimated: false }]);
    expect(await company.rows('bill_corrections', 'changed_at')).toMatchObject([
      { fields: ['is_estimated'] },
    ]);
  });

  test('has the account of its usage, by which bills are neighbours', async () => {
    const company = await newCompany();
    const identifiers = ['B', 'A'].map((value) => ({ rawName: 'Account Number', name: 'ACCOUNT', value }));
    const meterNumber = { rawName: 'Meter No.', name: 'METER', value: '1' };
    const of = (billed: number, start: string, end: string) => ({
      billed,
      usage: [{ ...january, start, end, more: { identifiers: [meterNumber, ...identifiers] } }],
    });
    await company.bill([of(1, '2026-01-01', '2026-02-01'), of(2, '2026-02-01', '2026-02-28')]);
    expect(await company.rows('bills', 'created')).toMatchObject([
      { account_number: 'A', last_day: '2026-01-31', boundary_rule: 'shared_day_to_next' },
      { account_number: 'A', last_day: '2026-02-28' },
    ]);
  });
});

test('a line of a bill has the commodity of its charge, or electricity if it is for demand or has a time of use', async () => {
  const company = await newCompany();
  const none = { electricityChargeType: null, gasChargeType: '', electricityIsDemand: false };
  const lineItems = [
    { ...none, electricityChargeType: 'SUPPLY' },
    { ...none, gasChargeType: 'SUPPLY', electricityTimeOfUse: 'PEAK' },
    { ...none, chargeType: 'TAX' },
    { ...none, electricityIsDemand: 'true' },
    { ...none, electricityTimeOfUse: 'PEAK' },
  ];
  await company.bill([{ billed: 1, usage: [], more: { lineItems } }]);
  const lines = await company.rows('bill_line_items', 'seq');
  expect(lines.map((row) => [row.commodity, row.is_demand])).toEqual([
    ['ELECTRICITY', false],
    ['GAS', false],
    [null, false],
    ['ELECTRICITY', true],
    ['ELECTRICITY', false],
  ]);
});

describe('cost', () => {
  const january = { start: '2026-01-01', end: '2026-01-31' };
  const lines = [
    { totalCharge: '10.00', quantity: '30', quantityUnits: 'kWh', electricityChargeType: 'SUPPLY' },
    { totalCharge: '20.00', quantity: '2', quantityUnits: 'thm (US)', gasChargeType: 'DELIVERY' },
    { totalCharge: '3.01', chargeType: 'FIXED' },
    { totalCharge: '99.00', chargeType: 'FIXED', billingPeriod: 'PREVIOUS' },
  ];

  test('of a bill over several meters is divided by its lines and sums to the bill', async () => {
    const company = await newCompany({ gas: { datasourceType: 'GAS' }, one: {}, two: {} });
    const electric = { datasourceType: 'ELECTRICITY' };
    const usage = [
      { meterId: 'one', ...january, usage: '20', more: electric },
      { meterId: 'two', ...january, usage: '10', more: electric },
      { meterId: 'gas', ...january, usage: '2', units: 'thm (US)', more: { datasourceType: 'GAS' } },
    ];
    await company.bill([{ billed: 1, cost: '33.01', usage, more: { lineItems: lines } }]);
    const costs = await company.rows('bill_costs', 'meter_id');
    expect(costs.map((row) => [row.meter_id, row.cost, row.allocation_method])).toEqual([
      ['gas', '21.00', 'line_items'],
      ['one', '7.67', 'line_items'],
      ['two', '4.34', 'line_items'],
    ]);
  });

  describe('of a line is divided', () => {
    const [electric, gas] = [{ datasourceType: 'ELECTRICITY' }, { datasourceType: 'GAS' }];
    const of = (meterId: string | null, usage: string, units = 'kWh', more: object = electric) => ({
      meterId,
      ...january,
      usage,
      units,
      more,
    });
    const byUse = { quantity: '9', quantityUnits: 'kWh' };
    const supply = { ...byUse, electricityChargeType: 'SUPPLY' };
    const demand = { ...byUse, electricityIsDemand: true };
    const hours = ['1', '2', '3'].map((usage) => of('b', usage));
    test.each([
      ['equally among meters if it is a fee', {}, [of('a', '1'), ...hours], ['50.00', '50.00']],
      ['only among known meters', {}, [of('a', '1'), of('b', '1'), of(null, '8')], ['50.00', '50.00']],
      ['by use, converted to one unit', supply, [of('a', '1', 'MWh'), of('b', '1000')], ['50.00', '50.00']],
      ['by use, not by power', supply, [of('a', '1'), of('a', '9', 'KW'), of('b', '1')], ['50.00', '50.00']],
      [
        'by use of meters that are objects',
        supply,
        ['a', 'b'].map((id, at) => of(id, `${1 + 2 * at}`, 'kWh', { ...electric, meter: { id } })),
        ['25.00', '75.00'],
      ],
      ['by use of meters that were not read yet', supply, [of('x', '1'), of('y', '3')], ['25.00', '75.00']],
      [
        'by use in the unit of the line',
        byUse,
        [of('a', '2'), ...hours, of('g', '1', 'CCF', gas)],
        ['25.00', '75.00', '0.00'],
      ],
      [
        'equally among meters with demand',
        demand,
        [
          of('a', '1', 'kWh', { billedDemand: '5' }),
          of('b', '1', 'kWh', { billedDemand: '7' }),
          of('b', '7', 'KW', { billedDemand: '7' }),
          of('g', '1', 'CCF', gas),
        ],
        ['50.00', '50.00', '0.00'],
      ],
      [
        'equally if no meter has a part',
        supply,
        [of('g', '1', 'CCF', gas), of('h', '2', 'CCF', gas)],
        ['50.00', '50.00'],
      ],
    ])('%s', async (_how, line, usage, parts) => {
      const company = await newCompany({ a: {}, b: {}, g: gas, h: gas });
      const lineItems = [{ totalCharge: '40.00', ...line }];
      await company.bill([{ billed: 1, cost: '100.00', usage, more: { lineItems } }]);
      const costs = await company.rows('bill_costs', 'meter_id');
      expect(costs.map((row) => row.cost)).toEqual(parts);
      expect(costs[0]?.allocation_method).toBe('line_items');
    });
  });

  describe('of a demand line is divided', () => {
    const ids = { a: randomUUID(), b: randomUUID(), c: randomUUID() };
    // All bills list the same rows of usage, which belong to the newest of them.
    let billed = 0;
    const of = (
      meter: keyof typeof ids,
      demandUsage: number,
      demandUsageUnits = 'kW',
      more: object = {},
    ) => ({
      ...{ demandUsage, demandUsageUnits, usageDataIds: [ids[meter]], ...more },
    });
    test.each([
      [
        'by demand, converted to one unit',
        [of('a', 60), of('b', 0.03, 'MW'), of('c', 10), of('c', 5)],
        {},
        ['60', '30', '10'],
      ],
      ['only among meters with demand', [of('a', 3), of('b', 1), of('c', 0)], {}, ['75', '25', '0']],
      [
        'by kVA if a meter has no kW',
        [of('a', 9), of('a', 3, 'kVA'), of('b', 1, 'kVA')],
        {},
        ['75', '25', '0'],
      ],
      ['equally if units differ', [of('a', 9), of('b', 1, 'kVA')], {}, ['50', '50', '0']],
      ['equally if one demand has no unit', [of('a', 9)], { billedDemand: '1' }, ['50', '50', '0']],
      ['without capacity', [of('a', 1), of('b', 9, 'kW', { demandType: 'CONTRACT' })], {}, ['100', '0', '0']],
    ])('%s', async (_how, demandMeters, ofB, parts) => {
      const company = await newCompany({ a: {}, b: {}, c: {} });
      const usage = (['a', 'b', 'c'] as const).map((meterId) => ({
        ...{ meterId, ...january, usage: '1', more: { id: ids[meterId], ...(meterId === 'b' ? ofB : {}) } },
      }));
      const lineItems = [{ totalCharge: '40.00', quantity: '9', electricityIsDemand: true }];
      billed += 1;
      await company.bill([{ billed, cost: '100.00', usage, more: { lineItems, demandMeters } }]);
      const costs = await company.rows('bill_costs', 'meter_id');
      expect(costs.map((row) => row.cost)).toEqual(parts.map((part) => `${part}.00`));
    });
  });

  test('is computed with less than ten times the blocks for a company with eight times the bills', async () => {
    const usage = ['a', 'b', 'c'].map((meterId) => ({ meterId, ...january, usage: '1' }));
    const lineItems = lines.slice(0, 4);
    // The test uses its own warehouse, which has no statistics.
    const young = await createWarehouse();
    onTestFinished(() => young.drop());
    const blocksOf = async (bills: number): Promise<number> => {
      const company = new BilledCompany(young);
      await company.add({ a: {}, b: {}, c: {} });
      const each = Array.from({ length: bills }, (_, at) => ({
        ...{ billed: at, cost: '33.01', usage, more: { lineItems } },
      }));
      await company.bill(each);
      return await blocksTouched(
        young,
        sql`select * from metersync.monthly_cost_now where company_id = ${company.id}::uuid`,
      );
    };
    const [few, many] = [await blocksOf(20), await blocksOf(160)];
    expect(many / few).toBeLessThan(10);
  });

  test('of a bill with a date of another century is in the month of the last day of the bill', async () => {
    const company = await newCompany();
    const of = (start: string, end: string) => ({ meterId: 'm', start, end, usage: '1' });
    await company.bill([
      { billed: 1, cost: '9.00', usage: [of('2026-01-01', '2026-01-31'), of('0202-01-01', '0202-01-31')] },
    ]);
    expect(await company.rows('monthly_cost', 'month')).toMatchObject([
      { month: '2026-01-01', cost: '9.00' },
    ]);
  });

  test('of a bill whose usage has no end is spread over the days of the bill', async () => {
    const company = await newCompany({ known: {}, m: {} });
    const of = (meterId: string, end: string) => ({ meterId, start: '2026-01-17', end, usage: '1' });
    const more = { startDate: '2026-01-17', endDate: '2026-02-15' };
    await company.bill([
      { billed: 1, cost: '60.00', usage: [of('m', '2026-01-17'), of('known', '2026-01-20')], more },
    ]);
    const months = await company.rows('monthly_cost', 'meter_id, month');
    expect(months.map((row) => [row.meter_id, row.month, row.cost, row.days_covered])).toEqual([
      ['known', '2026-01-01', '30.00', 4],
      ['m', '2026-01-01', '15.00', 15],
      ['m', '2026-02-01', '15.00', 15],
    ]);
  });
});

test('usage belongs to the company of its document at once, and is deleted with it', async () => {
  const company = await newCompany();
  const other = await newCompany();
  const usage = [{ meterId: null, start: '2024-01-01', end: '2024-01-31', usage: '10' }];
  const [id = ''] = await company.bill([{ billed: 1, cost: '5.00', usage, more: { site: other.siteId } }]);
  const own = [{ bill_id: id, site_id: other.siteId }];
  expect(await company.rows('usage', 'usage_id')).toMatchObject(own);
  const change = (set: ReturnType<typeof sql>) =>
    warehouse.db.execute(sql`update utility.documents set ${set} where id = ${id}::uuid`);
  await change(sql`company_id = ${other.id}::uuid`);
  expect(await company.rows('usage', 'usage_id')).toEqual([]);
  expect(await other.rows('usage', 'usage_id')).toMatchObject(own);
  await change(sql`absent_since = now(), absent_by = 'absent'`);
  expect(await other.rows('usage', 'usage_id')).toEqual([]);
});
