import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keepMonths } from '../../db/watch/months.ts';
import { BilledCompany } from '../support/bills.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const seed = Number(process.env.SEED ?? 20_261_122);

/** Returns the date that is the given number of days after 1 January 2024. */
const day = (days: number) => new Date(Date.UTC(2024, 0, 1 + days)).toISOString().slice(0, 10);
const daysUntil = (date: string) => (Date.parse(`${date}T00:00:00Z`) - Date.UTC(2024, 0, 1)) / 86_400_000;
const amount = fc
  .tuple(fc.integer({ min: -10_000_000, max: 10_000_000 }), fc.integer({ min: 0, max: 9 }))
  .map(([whole, places]) =>
    places === 0
      ? `${whole}`
      : `${whole}.${String(Math.abs(whole * 7919))
          .padStart(places, '0')
          .slice(-places)}`,
  );

/** Dates of the service. Most are within 400 days, some are in a misread year, and some are missing. */
const start = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: 0, max: 400 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(daysUntil('0001-02-20'), daysUntil('1902-12-20'), daysUntil('9998-11-15')),
  },
  { weight: 2, arbitrary: fc.constant(null) },
);

const record = fc.record({
  meter: fc.constantFrom(0, 0, 1, 2, null),
  start,
  days: fc.oneof(
    { weight: 12, arbitrary: fc.integer({ min: -3, max: 120 }) },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
  usage: fc.oneof({ weight: 12, arbitrary: amount }, { weight: 1, arbitrary: fc.constant(null) }),
  units: fc.constantFrom('kWh', 'kWh', 'MWh', 'thm (US)', 'CCF', 'teu', 'KW', 'MW'),
  exclusion: fc.boolean(),
  billedDemand: fc.option(fc.integer({ min: 0, max: 500 })),
  /** The kW of a demand meter of v2.2. */
  metered: fc.option(fc.integer({ min: 0, max: 500 }), { freq: 1 }),
});

const line = fc.record({
  totalCharge: amount,
  quantity: fc.constantFrom('5', null),
  electricityIsDemand: fc.boolean(),
  chargeType: fc.constantFrom('USAGE', 'FIXED'),
});

const bill = fc.record({
  cost: fc.option(amount),
  currency: fc.constantFrom('USD', 'CAD', null),
  account: fc.constantFrom('A-1', 'A-2', null),
  usage: fc.array(record, { maxLength: 4 }),
  lineItems: fc.array(line, { maxLength: 3 }),
  replacedBy: fc.option(fc.nat(7), { nil: undefined }),
});

type Bill = typeof bill extends fc.Arbitrary<infer T> ? T : never;

const standard: Readonly<Record<string, readonly [units: string, factor: number]>> = {
  kWh: ['kWh', 1],
  MWh: ['kWh', 1000],
  'thm (US)': ['kWh', 29.300_111],
  CCF: ['cubic m', 2.831_684_659_2],
  teu: ['teu', 1],
  KW: ['kW', 1],
  MW: ['kW', 1000],
};

/** A record that counts, with its first and last day. A record without dates has no days. */
interface Counted {
  readonly document: string;
  readonly source: string;
  readonly first: number | null;
  readonly last: number | null;
  readonly units: string;
  readonly demand: number | null;
  readonly metered: number | null;
}

const sentDates = ({ start, days }: Bill['usage'][number]) => ({
  start: start === null ? null : day(start),
  end: start === null || days === null ? null : day(start + days),
});

function counted(
  bills: readonly Bill[],
  ids: readonly string[],
  meters: readonly string[],
  effective: ReadonlySet<unknown>,
): Counted[] {
  return bills.flatMap((one, at) => {
    const document = ids[at] ?? '';
    if (!effective.has(document)) return [];
    return one.usage.map((said) => {
      const ends = said.start === null ? [] : [said.start, said.start + (said.days ?? 0)];
      const [units = '', factor = 1] = standard[said.units] ?? [];
      const billed =
        said.billedDemand === null ? [] : [units === 'kW' ? said.billedDemand * factor : said.billedDemand];
      const demands =
        units === 'kW' && said.usage !== null ? [...billed, Number(said.usage) * factor] : billed;
      return {
        document,
        units,
        source: said.meter === null ? (one.account ?? document) : (meters[said.meter] ?? ''),
        first: ends.length === 0 ? null : Math.min(...ends),
        last: ends.length === 0 ? null : Math.max(...ends),
        demand: demands.length === 0 ? null : Math.max(...demands),
        metered: units === 'kW' ? null : said.metered,
      };
    });
  });
}

interface Month {
  covered: number;
  doubly: number;
  peak: number | null;
  metered: number | null;
}

const monthOf = (at: number) => `${day(at).slice(0, 7)}-01`;
const later = (month: string) => monthOf(daysUntil(month) + 31);

/**
 * Computes the months of a source and unit day by day. A day that two records share belongs to the second
 * record. Gaps of less than ten years get rows.
 */
function monthsOf(own: readonly Counted[], units: string): Map<string, Month> {
  const alike = own.filter((each) => each.units === units);
  const firsts = [...new Set(alike.flatMap(({ first }) => first ?? []))].sort((a, b) => a - b);
  const months = new Map<string, Month>();
  const days = new Map<number, Set<string>>();
  const month = (name: string) => {
    const here = months.get(name) ?? { covered: 0, doubly: 0, peak: null, metered: null };
    months.set(name, here);
    return here;
  };
  const peak = (name: string, { demand, metered }: Counted) => {
    const here = month(name);
    if (demand !== null) here.peak = Math.max(here.peak ?? demand, demand);
    if (metered !== null) here.metered = Math.max(here.metered ?? metered, metered);
  };
  for (const one of alike) {
    if (one.first === null || one.last === null) {
      peak('none', one);
      continue;
    }
    const next = firsts.find((first) => first > (one.first ?? 0));
    const until = one.last > one.first && next === one.last ? one.last : one.last + 1;
    for (let at = one.first; at < until; at++) {
      days.set(at, (days.get(at) ?? new Set()).add(one.document));
      peak(monthOf(at), one);
    }
    if (next === undefined || next - until > 3660) continue;
    for (let name = later(monthOf(until - 1)); name < monthOf(next); name = later(name)) month(name);
  }
  for (const [at, documents] of days) {
    const here = month(monthOf(at));
    here.covered++;
    if (documents.size > 1) here.doubly++;
  }
  return months;
}

test(`for any set of bills, months add up to the bills exactly and cover the days of the bills (seed ${seed})`, {
  timeout: 120_000,
}, async () => {
  const drawn = new Map<string, readonly Bill[]>();
  await fc.assert(
    fc.asyncProperty(fc.array(bill, { minLength: 1, maxLength: 8 }), async (bills) => {
      const company = new BilledCompany(warehouse);
      const meters = [0, 1, 2].map((meter) => `${company.id}/${meter}`);
      await company.add(Object.fromEntries(meters.map((id) => [id, {}])));
      const ids = bills.map(() => randomUUID());
      const usageIds = new Map(bills.flatMap(({ usage }) => usage.map((said) => [said, randomUUID()])));
      await company.bill(
        bills.map((one, at) => ({
          id: ids[at] ?? '',
          billed: at,
          usage: one.usage.map((said) => ({
            ...sentDates(said),
            meterId: said.meter === null ? null : (meters[said.meter] ?? ''),
            usage: said.usage,
            units: said.units,
            more: {
              id: usageIds.get(said),
              exclusion: said.exclusion,
              billedDemand: said.billedDemand,
            },
          })),
          more: {
            currentCharges: one.cost,
            chargesUnits: one.currency,
            accountNumber: one.account,
            lineItems: one.lineItems,
            demandMeters: one.usage.flatMap((said) =>
              said.metered === null
                ? []
                : { demandUsage: said.metered, demandUsageUnits: 'kW', usageDataIds: [usageIds.get(said)] },
            ),
            revisedDocumentId: one.replacedBy === undefined ? null : (ids[one.replacedBy] ?? null),
          },
        })),
      );
      drawn.set(company.id, bills);
      const effective = new Set((await company.rows('bills', 'bill_id')).map((row) => row.bill_id));
      await compareMonths(company, counted(bills, ids, meters, effective));
    }),
    { seed, numRuns: cases(20, 50) },
  );
  await keepMonths(warehouse.db, { budgetSeconds: 60 });
  for (const { company, ...sums } of await differences())
    expect(sums, JSON.stringify(drawn.get(company))).toBeUndefined();
  for (const [view, key] of Object.entries(keys)) {
    const { rows } = await warehouse.db.execute(
      sql.raw(
        `select company_id, ${key} from analytics.${view} group by company_id, ${key} having count(*) > 1`,
      ),
    );
    expect(rows, `${view} has several rows for one ${key}`).toEqual([]);
  }
});

/** The columns that identify a row of each view within a company. */
const keys: Readonly<Record<string, string>> = {
  bills_all: 'bill_id',
  bills: 'bill_id',
  usage: 'usage_id',
  bill_costs: 'bill_id, meter_id',
  bill_meters: 'bill_id, meter_id',
  meters: 'meter_id',
  year_on_year: 'site_id, meter_id, commodity, month, measure, units',
  bill_line_items: 'bill_id, seq',
  monthly_usage: 'meter_id, unmetered_source, month, units',
  monthly_cost: 'site_id, meter_id, datasource_type, month, currency',
  monthly_by_site: 'site_id, commodity, month, units, currency',
  statement_availability: 'site_id, month',
};

/** Lists the companies, units and meters whose months have another sum than the bills that count. */
async function differences(): Promise<{ company: string; sums: string; said: unknown; shown: unknown }[]> {
  const { rows } = await warehouse.db.execute<Awaited<ReturnType<typeof differences>>[number]>(sql`
    with counts as (
      select d.* from utility.documents d join analytics.bills b on b.bill_id = d.id
    ), usage as (
      select u.company_id, u.meter_id, coalesce(f.standard_units, u.usage_units) as units,
        sum(case when f.dimension = 'power' then null else
          case when (u.raw ->> 'exclusion')::boolean then -1 else 1 end * metersync.in_standard_units(
            case when (u.raw ->> 'exclusion')::boolean then abs(u.usage) else u.usage end, coalesce(f.factor, 1)) end) as amount
      from utility.usage_data u join counts d on d.id = u.document_id left join ops.unit_factors f on f.units = u.usage_units
      group by 1, 2, 3
    ), cost as (
      select company_id, raw ->> 'chargesUnits' as units, sum((raw ->> 'currentCharges')::numeric) as amount from counts group by 1, 2
    ), said as (
      select company_id, 'meter' as sums, meter_id, units, amount from usage
      union all select company_id, 'beside cost', null, units, sum(usage) from analytics.monthly_usage
        where units <> 'kW' group by 1, 4
      union all select company_id, 'cost', null, units, amount from cost
      union all select company_id, 'beside usage', null, units, amount from cost where amount is not null
    ), shown as (
      select company_id, 'meter' as sums, meter_id, units, sum(billed_usage) as amount from analytics.monthly_usage group by 1, 3, 4
      union all select company_id, 'cost', null, currency, sum(cost) from analytics.monthly_cost group by 1, 4
      union all select company_id, 'beside usage', null, currency, sum(cost) from analytics.monthly_by_site
        where cost is not null group by 1, 4
      union all select company_id, 'beside cost', null, units, sum(usage) from analytics.monthly_by_site
        where units is not null group by 1, 4
    )
    select coalesce(a.company_id, b.company_id) as company, concat_ws(' ', coalesce(a.sums, b.sums), coalesce(a.units, b.units)) as sums,
      a.amount as said, b.amount as shown
    from said a full join shown b on (a.company_id, a.sums, coalesce(a.meter_id, ''), coalesce(a.units, ''))
      = (b.company_id, b.sums, coalesce(b.meter_id, ''), coalesce(b.units, ''))
    where a.sums is null or b.sums is null or a.amount is distinct from b.amount`);
  return rows;
}

async function compareMonths(company: BilledCompany, records: readonly Counted[]): Promise<void> {
  const rows = await company.rows('monthly_usage', 'month');
  const expected = [...Map.groupBy(records, ({ source }) => source)].flatMap(([source, own]) =>
    [...new Set(own.map(({ units }) => units))].flatMap((units) =>
      [...monthsOf(own, units)].map(([month, { covered, doubly, ...demand }]) => {
        const peak = (demand.metered ?? demand.peak)?.toPrecision(9) ?? 'none';
        const peakUnits = units === 'kW' || demand.metered !== null ? 'kW' : 'none';
        return [source, units, month, covered, doubly, peak, peakUnits].join();
      }),
    ),
  );
  const computed = rows.map((row) => {
    const peak = row.peak_demand === null ? 'none' : Number(row.peak_demand).toPrecision(9);
    return [
      row.meter_id ?? row.unmetered_source,
      row.units,
      row.month ?? 'none',
      row.days_covered,
      row.days_overlapped,
      peak,
      row.peak_demand_units ?? 'none',
    ].join();
  });
  expect(computed.sort()).toEqual(expected.sort());
  for (const row of rows) {
    if (row.units === 'kW') expect([row.usage, row.billed_usage]).toEqual([null, null]);
    if (row.month === null)
      expect([row.days_in_month, row.coverage, row.is_complete]).toEqual([null, null, null]);
    else if (row.days_covered === 0)
      expect([row.usage, row.billed_usage, row.coverage]).toEqual([null, null, '0.0000']);
    else if (row.days_overlapped === 0) expect(Number(row.usage)).toBeCloseTo(Number(row.billed_usage), 4);
  }
}
