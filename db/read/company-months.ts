import { and, eq, isNotNull, sql, sum } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { monthlyCost, monthlyUsage } from '../schema/metersync.ts';
import { sites } from '../schema/utility.ts';

/** Sums of a company by month, as the worker last kept them. Amounts are text, as Postgres has them. */
export interface CompanyMonths {
  /** First days (YYYY-MM-DD) of the latest months that have bills, without gaps, the oldest first. */
  readonly months: readonly string[];
  readonly cost: readonly { month: string; currency: string | null; cost: string | null }[];
  readonly usage: readonly {
    month: string;
    commodity: string | null;
    units: string | null;
    usage: string | null;
  }[];
  /** The days of meters that a site has in a month, and how many of them are billed. */
  readonly billed: readonly {
    month: string;
    siteId: string | null;
    site: string | null;
    days: number;
    covered: number;
  }[];
}

/** Units of demand, whose values are no amounts that a month adds up. */
const demandUnits = ['kW', 'kVA', 'kVAR'];

/**
 * Reads what the last months of a company cost and used, and which are billed.
 * @param monthsMax how many months at most
 */
export async function readCompanyMonths(
  db: Executor,
  companyId: string,
  monthsMax = 24,
): Promise<CompanyMonths> {
  const costMonth = sql<string>`${monthlyCost.month}::text`;
  const usageMonth = sql<string>`${monthlyUsage.month}::text`;
  const usageOf = and(eq(monthlyUsage.companyId, companyId), isNotNull(monthlyUsage.month));
  const [cost, usage, billed] = await Promise.all([
    db
      .select({ month: costMonth, currency: monthlyCost.currency, cost: sum(monthlyCost.cost) })
      .from(monthlyCost)
      .where(and(eq(monthlyCost.companyId, companyId), isNotNull(monthlyCost.month)))
      .groupBy(monthlyCost.month, monthlyCost.currency)
      .orderBy(monthlyCost.month, monthlyCost.currency),
    db
      .select({
        month: usageMonth,
        commodity: monthlyUsage.datasourceType,
        units: monthlyUsage.units,
        usage: sum(monthlyUsage.usage),
      })
      .from(monthlyUsage)
      .where(usageOf)
      .groupBy(monthlyUsage.month, monthlyUsage.datasourceType, monthlyUsage.units)
      .orderBy(monthlyUsage.month, monthlyUsage.datasourceType, monthlyUsage.units),
    db
      .select({
        month: usageMonth,
        siteId: monthlyUsage.siteId,
        site: sites.name,
        days: sql<number>`sum(${monthlyUsage.daysInMonth})::int`,
        covered: sql<number>`sum(${monthlyUsage.daysCovered})::int`,
      })
      .from(monthlyUsage)
      .leftJoin(sites, eq(sites.id, monthlyUsage.siteId))
      .where(usageOf)
      .groupBy(monthlyUsage.month, monthlyUsage.siteId, sites.name)
      .orderBy(sites.name, monthlyUsage.siteId, monthlyUsage.month),
  ]);
  const months = monthsUntil([...cost, ...billed.filter(({ covered }) => covered > 0)], monthsMax);
  const shown = <Row extends { month: string }>(rows: Row[]) =>
    rows.filter(({ month }) => months.includes(month));
  return {
    months,
    cost: shown(cost),
    usage: shown(usage).filter(({ units }) => units === null || !demandUnits.includes(units)),
    billed: shown(billed),
  };
}

/** The months up to the last one of some rows, without gaps; at most `monthsMax`, and none before the first. */
function monthsUntil(rows: readonly { readonly month: string }[], monthsMax: number): string[] {
  const sorted = rows.map(({ month }) => month).sort();
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return [];
  const months = [last];
  while (months.length < monthsMax && (months[0] as string) > first)
    months.unshift(monthBefore(months[0] as string));
  return months;
}

/** The first day of the month before that of another first day. */
function monthBefore(day: string): string {
  const [year = 0, month = 0] = day.split('-').map(Number);
  return month === 1
    ? `${String(year - 1).padStart(4, '0')}-12-01`
    : `${day.slice(0, 5)}${String(month - 1).padStart(2, '0')}-01`;
}
