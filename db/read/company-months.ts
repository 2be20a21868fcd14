import { and, eq, isNotNull, sql, sum } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { monthlyCost, monthlyUsage } from '../schema/metersync.ts';
import { sites } from '../schema/utility.ts';
import { monthOf, monthsOf } from './months.ts';

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
 * @param now a time of the last month to read: later ones come from mistyped dates
 * @param monthsMax how many months at most
 */
export async function readCompanyMonths(
  db: Executor,
  companyId: string,
  now: string,
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
  const months = monthsOf(
    [...cost, ...billed.filter(({ covered }) => covered > 0)],
    monthOf(now),
    monthsMax,
  );
  const shown = <Row extends { month: string }>(rows: Row[]) =>
    rows.filter(({ month }) => months.includes(month));
  return {
    months,
    cost: shown(cost),
    usage: shown(usage).filter(({ units }) => units === null || !demandUnits.includes(units)),
    billed: shown(billed),
  };
}
