import { and, eq, gt, isNotNull, lt, or, sql, sum } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { monthlyCost, monthlyUsage, statementAvailability } from '../schema/views.ts';

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

const ofMonths = (of: typeof monthlyCost | typeof monthlyUsage, companyId: string | undefined) =>
  and(isNotNull(of.month), companyId === undefined ? undefined : eq(of.companyId, companyId));

/** Sums the cost of one company or of all by month and currency, oldest month first. */
export async function costByMonth(db: Executor, companyId: string | undefined) {
  const { month, currency, cost } = monthlyCost;
  return await db
    .select({ month: sql<string>`${month}`, currency, cost: sum(cost) })
    .from(monthlyCost)
    .where(ofMonths(monthlyCost, companyId))
    .groupBy(month, currency)
    .orderBy(month, currency);
}

/** Sums usage by month, commodity and unit, oldest month first, and counts the billed meters. */
export async function usageByMonth(db: Executor, companyId: string | undefined) {
  const { month, commodity, units, usage, meterId, daysCovered } = monthlyUsage;
  return await db
    .select({
      month: sql<string>`${month}`,
      commodity,
      units,
      usage: sum(usage),
      meters: sql<number>`(count(distinct ${meterId}) filter (where ${daysCovered} > 0))::int`,
    })
    .from(monthlyUsage)
    .where(ofMonths(monthlyUsage, companyId))
    .groupBy(month, commodity, units)
    .orderBy(month, commodity, units);
}

/** Counts the days of all meters, and their billed days, by site and month of a company. */
async function billedDays(db: Executor, companyId: string) {
  const { month, siteId, site, daysInMonth, daysCovered } = monthlyUsage;
  return await db
    .select({
      month: sql<string>`${month}`,
      siteId,
      site,
      days: sql<number>`sum(${daysInMonth})::int`,
      covered: sql<number>`sum(${daysCovered})::int`,
    })
    .from(monthlyUsage)
    .where(ofMonths(monthlyUsage, companyId))
    .groupBy(month, siteId, site)
    .orderBy(site, siteId, month);
}

/** Finds months of sites in which bills were corrected or meters lack an expected bill. */
async function unusualMonths(db: Executor, companyId: string) {
  const { month, siteId, superseded, corrected, metersExpected, metersBilled } =
    statementAvailability;
  return await db
    .select({
      month,
      siteId,
      corrected: sql<boolean>`${superseded} + ${corrected} > 0`,
      unbilled: sql<boolean>`${metersBilled} < ${metersExpected}`,
    })
    .from(statementAvailability)
    .where(
      and(
        eq(statementAvailability.companyId, companyId),
        isNotNull(month),
        or(gt(sql`${superseded} + ${corrected}`, 0), lt(metersBilled, metersExpected)),
      ),
    );
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
  billed: Awaited<ReturnType<typeof billedDays>>,
  unusual: Awaited<ReturnType<typeof unusualMonths>>,
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
