import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { BilledCompany, type UsageSaid } from '../support/bills.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

async function newCompany(meters: Readonly<Record<string, object>> = {}): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(meters);
  return company;
}

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

/** Usage of January 2026. */
const january = (meterId: string | null, usage = '31', more: object = {}): UsageSaid => ({
  meterId,
  start: '2026-01-01',
  end: '2026-01-31',
  usage,
  more,
});
const netMetered = { m: {}, out: { netMeteringType: 'EXPORT' }, sun: { netMeteringType: 'GENERATION' } };

describe('usage', () => {
  test('is signed, so exclusions and exports are subtracted, and generation is separate', async () => {
    const company = await newCompany(netMetered);
    const excluded = january('m', '31', { exclusion: true });
    const large = january('m', '31', { usageUnits: 'MWh' });
    await company.bill([
      { billed: 1, usage: [january('m'), excluded, january('out'), january('sun'), large] },
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
    const company = await newCompany(netMetered);
    const excluded = january('m', '-5', { exclusion: true });
    await company.bill([
      { billed: 1, usage: [january('m'), excluded, january('out', '-7'), january('sun', '-9')] },
    ]);
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
    const of = (meterId: string, usageUnits: string, usage: string) =>
      january(meterId, usage, { usageUnits });
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
    const meter = randomUUID();
    const company = await newCompany({ m: {}, [meter]: {} });
    const units = 'thm (US)';
    await company.bill([{ billed: 1, usage: [{ ...january('m', '1'), end: '2026-01-30', units }] }]);
    await company.read({ meter, from: '2026-01-05', seconds: 420, units, usage: 1.7 });
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
    const of = (meterId: string, id: string | undefined, more: object = {}) =>
      january(meterId, '31', { id, ...more });
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
      (await company.rows(view, order)).map((row) => [row.meter_id, row.peak_demand, row.peak_demand_units]);
    expect(await peaks('monthly_usage', 'meter_id')).toEqual([
      ['gas', null, null],
      ['m', '9.000', 'kW'],
      ['n', '12', 'kVA'],
      ['odd', null, null],
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
    const dates = await warehouse.db.execute<{ first: string; later: string }>(sql`
      select (date_trunc('month', current_date) - interval '3 months')::date::text as first,
        (date_trunc('month', current_date) + interval '5 years')::date::text as later`);
    const { first = '', later = '' } = dates.rows[0] ?? {};
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
      usage: [january(null, usage, more)],
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
      // 7 of account A, 9 of the newer bill of account B, and 1 + 2 of the bills without an account.
      { commodity: null, usage: '19.000000', coverage: '1.0000', is_complete: false },
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
