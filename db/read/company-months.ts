import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';

/** Returns the first day (YYYY-MM-DD) of the month of a time or day. */
export const monthOf = (time: string): string => `${time.slice(0, 7)}-01`;

const monthBefore = (month: string): string => {
  const first = new Date(`${month}T00:00:00Z`);
  return monthOf(new Date(first.setUTCMonth(first.getUTCMonth() - 1)).toISOString());
};

/** Returns the latest months with data, oldest first, without gaps or (mistyped) future months. */
export function monthsOf(
  rows: readonly { readonly month: string }[],
  now: string,
  monthsMax: number,
): string[] {
  const past = rows.map(({ month }) => month).filter((month) => month <= now);
  const [first, last] = [past.toSorted()[0], past.toSorted().at(-1)];
  const months: string[] = [];
  for (let month = last; month !== undefined && first !== undefined; month = monthBefore(month)) {
    if (month < first || months.length === monthsMax) break;
    months.unshift(month);
  }
  return months;
}

/** Sums of a company by month, as last stored. Amounts are text, as Postgres prints them. */
export type CompanyMonths = Awaited<ReturnType<typeof readCompanyMonths>>;

/** Whether a row belongs to a company, or to any. */
export const isOf = (companyId: string | undefined): SQL =>
  companyId === undefined ? sql`true` : sql`company_id = ${companyId}::uuid`;

type MonthOfCost = {
  readonly month: string;
  readonly currency: string | null;
  readonly cost: string | null;
};

/** Sums the cost of one company or of all by month and currency, oldest month first. */
export async function costByMonth(
  db: Executor,
  companyId: string | undefined,
): Promise<MonthOfCost[]> {
  const { rows } = await db.execute<MonthOfCost>(sql`
    select month, currency, sum(cost) as cost
    from analytics.monthly_cost
    where month is not null and ${isOf(companyId)}
    group by month, currency
    order by month, currency`);
  return rows;
}

type MonthOfUsage = {
  readonly month: string;
  readonly commodity: string | null;
  readonly units: string | null;
  readonly usage: string | null;
  /** Billed meters. */
  readonly meters: number;
};

/** Sums usage by month, commodity and unit, oldest month first, and counts the billed meters. */
export async function usageByMonth(
  db: Executor,
  companyId: string | undefined,
): Promise<MonthOfUsage[]> {
  const { rows } = await db.execute<MonthOfUsage>(sql`
    select
      month, commodity, units,
      sum(usage) as usage,
      (count(distinct meter_id) filter (where days_covered > 0))::int as meters
    from analytics.monthly_usage
    where month is not null and ${isOf(companyId)}
    group by month, commodity, units
    order by month, commodity, units`);
  return rows;
}

/** The days of all meters of a site in a month, and how many of them are billed. */
type BilledDays = {
  readonly month: string;
  readonly siteId: string | null;
  readonly site: string | null;
  readonly days: number;
  readonly covered: number;
};

async function billedDays(db: Executor, companyId: string): Promise<BilledDays[]> {
  const { rows } = await db.execute<BilledDays>(sql`
    select
      month, site,
      site_id as "siteId",
      sum(days_in_month)::int as days,
      sum(days_covered)::int as covered
    from analytics.monthly_usage
    where month is not null and company_id = ${companyId}::uuid
    group by month, site_id, site
    order by site, site_id, month`);
  return rows;
}

/** A month of a site in which bills were corrected or meters lack an expected bill. */
type UnusualMonth = {
  readonly month: string;
  readonly siteId: string | null;
  readonly corrected: boolean;
  readonly unbilled: boolean;
};

async function unusualMonths(db: Executor, companyId: string): Promise<UnusualMonth[]> {
  const { rows } = await db.execute<UnusualMonth>(sql`
    select
      month,
      site_id as "siteId",
      excluded_superseded + included_corrected > 0 as corrected,
      meters_billed < meters_expected as unbilled
    from analytics.statement_availability
    where company_id = ${companyId}::uuid
      and month is not null
      and (excluded_superseded + included_corrected > 0 or meters_billed < meters_expected)`);
  return rows;
}

/** Units of demand. The demand of several bills cannot be added up to a monthly amount. */
const demandUnits = ['kW', 'kVA', 'kVAR'];

/** How the calendar of bills marks a month of a site. */
export type MonthMark = 'billed' | 'part' | 'missing' | 'late' | 'corrected';

/**
 * Marks each month of each site. A month that lacks bills is late after the last month with a
 * billed day. A billed month is corrected if a bill was. Others are marked by their billed days.
 */
function markMonths(
  billed: readonly BilledDays[],
  unusual: readonly UnusualMonth[],
  months: readonly string[],
) {
  return [...Map.groupBy(billed, ({ siteId }) => siteId)].map(([siteId, days]) => {
    const last = days.findLast(({ covered }) => covered > 0)?.month ?? '';
    const ofSite = unusual.filter((row) => row.siteId === siteId);
    const markOf = (month: string): MonthMark => {
      const day = days.find((row) => row.month === month);
      const found = ofSite.find((row) => row.month === month);
      if (found?.unbilled && month > last) return 'late';
      if (day === undefined || day.covered === 0) return 'missing';
      if (found?.corrected) return 'corrected';
      return day.covered >= day.days ? 'billed' : 'part';
    };
    return { site: days[0]?.site ?? null, marks: months.map(markOf) };
  });
}

/**
 * Reads the cost and the usage of a company's latest months, and a calendar of its bills.
 * @param now a time in the last month to read, because later months come from mistyped dates
 * @param monthsMax maximum number of months
 */
export async function readCompanyMonths(
  db: Executor,
  companyId: string,
  now: string,
  monthsMax = 24,
) {
  const [cost, usage, billed, unusual] = await Promise.all([
    costByMonth(db, companyId),
    usageByMonth(db, companyId),
    billedDays(db, companyId),
    unusualMonths(db, companyId),
  ]);
  const withBills = [...cost, ...billed.filter(({ covered }) => covered > 0)];
  const months = monthsOf(withBills, monthOf(now), monthsMax);
  // Late bills belong to months after the last month that has bills.
  const calendar = monthsOf(
    [...withBills, ...unusual.filter(({ unbilled }) => unbilled)],
    monthOf(now),
    monthsMax,
  );
  const shown = <Row extends { month: string }>(rows: Row[]) =>
    rows.filter(({ month }) => months.includes(month));
  return {
    /** First days (YYYY-MM-DD) of the latest months with bills, without gaps, oldest first. */
    months,
    cost: shown(cost),
    usage: shown(usage).filter(({ units }) => units === null || !demandUnits.includes(units)),
    calendar: { months: calendar, sites: markMonths(billed, unusual, calendar) },
  };
}
