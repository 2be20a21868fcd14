import { and, eq, isNotNull, sql, sum } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { monthlyCost, monthlyUsage } from './views.ts';

/** Returns the first day (YYYY-MM-DD) of the month of a time or day. */
export const monthOf = (time: string): string => `${time.slice(0, 7)}-01`;

const monthBefore = (month: string): string => {
  const first = new Date(`${month}T00:00:00Z`);
  return monthOf(new Date(first.setUTCMonth(first.getUTCMonth() - 1)).toISOString());
};

/**
 * Returns the latest months with data, oldest first, without gaps. Future months, which come from mistyped
 * dates, are ignored, because they must not replace past months.
 */
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

/** Sums of a company by month, as the worker last kept them. Amounts are text, as Postgres has them. */
export type CompanyMonths = Awaited<ReturnType<typeof readCompanyMonths>>;

const ofMonths = (of: typeof monthlyCost | typeof monthlyUsage, companyId: string | undefined) =>
  and(isNotNull(of.month), companyId === undefined ? undefined : eq(of.companyId, companyId));

/** Sums cost by month and currency, oldest month first: of a company, or of all. */
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

/** Counts the days of meters that each site of a company has in a month, and how many of them are billed. */
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

/** Units of demand, whose values are no amounts that a month adds up. */
const demandUnits = ['kW', 'kVA', 'kVAR'];

/**
 * Reads what the last months of a company cost and used, and which are billed.
 * @param now a time of the last month to read: later ones come from mistyped dates
 * @param monthsMax how many months at most
 */
export async function readCompanyMonths(
  db: Executor,
  companyId: string,
  now: string,
  monthsMax = 24,
) {
  const [cost, usage, billed] = await Promise.all([
    costByMonth(db, companyId),
    usageByMonth(db, companyId),
    billedDays(db, companyId),
  ]);
  const months = monthsOf(
    [...cost, ...billed.filter(({ covered }) => covered > 0)],
    monthOf(now),
    monthsMax,
  );
  const shown = <Row extends { month: string }>(rows: Row[]) =>
    rows.filter(({ month }) => months.includes(month));
  return {
    /** First days (YYYY-MM-DD) of the latest months that have bills, without gaps, the oldest first. */
    months,
    cost: shown(cost),
    usage: shown(usage).filter(({ units }) => units === null || !demandUnits.includes(units)),
    billed: shown(billed),
  };
}
