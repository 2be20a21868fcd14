import { and, count, desc, eq, isNotNull, isNull, type SQL, sql, sum } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { companies, meters, sites } from '../schema/utility.ts';
import { costByMonth, usageByMonth } from './company-months.ts';
import { monthOf, monthsOf } from './months.ts';
import {
  isOf,
  monthsMax,
  readAttention,
  readCorrections,
  readFreshness,
  readIssues,
  utc,
} from './report-parts.ts';
import { bills, monthlyUsage, siteTimeZones } from './views.ts';

/** Amounts are text, as Postgres has them; months are first days (YYYY-MM-DD). */
export type Report = Awaited<ReturnType<typeof readReport>>;

/**
 * Reads a report in one transaction. Load profile and coverage read every reading: for all
 * companies together, with millions of readings, that takes a minute.
 * @param onProgress receives the part that is read next
 */
export async function readReport(
  db: Database,
  companyId?: string,
  onProgress: (part: string) => void = () => {},
) {
  return await withTransaction(db, (tx) => readWithin(tx, companyId, onProgress), {
    isolationLevel: 'repeatable read',
    accessMode: 'read only',
  });
}

async function readWithin(
  tx: Executor,
  companyId: string | undefined,
  onProgress: (part: string) => void,
) {
  const part = <T>(name: string, read: () => Promise<T>): Promise<T> => {
    onProgress(name);
    return read();
  };
  const clock = await tx.execute<{ madeAt: string }>(
    sql`select ${utc<string>(sql`now()`)} as "madeAt"`,
  );
  const madeAt = clock.rows[0]?.madeAt ?? '';
  const parts = {
    /** When the report was read. */
    madeAt,
    /** The company of the report; null for all. */
    company: companyId === undefined ? null : await readCompany(tx, companyId),
    counts: await readCounts(tx, companyId),
    cost: await part('cost by month', () => costByMonth(tx, companyId)),
    usage: await part('usage by month', () => usageByMonth(tx, companyId)),
    /** What no month has, as it has no dates: by currency, and by commodity and unit. */
    undated: await part('bills without dates', () => readUndated(tx, companyId)),
    coverage: await part('coverage of bills and readings', () => readCoverage(tx, companyId)),
    timeZones: await readTimeZones(tx, companyId),
    load: await part('load profile', () => readLoad(tx, companyId)),
    corrections: await part('corrections', () => readCorrections(tx, companyId)),
    attention: await part('connections', () => readAttention(tx, companyId)),
    issues: await part('issues', () => readIssues(tx, companyId)),
    freshness: await part('freshness', () => readFreshness(tx, companyId)),
  };
  const months = monthsOf(
    [...parts.cost, ...parts.usage, ...parts.coverage],
    monthOf(madeAt),
    monthsMax,
  );
  const inMonths = <T extends { readonly month: string }>(all: readonly T[]): T[] =>
    all.filter(({ month }) => months.includes(month));
  return {
    ...parts,
    /** Every month of the charts, also those without data; the last is not later than that of `madeAt`. */
    months,
    cost: inMonths(parts.cost),
    usage: inMonths(parts.usage),
    coverage: inMonths(parts.coverage),
  };
}

async function readCompany(tx: Executor, id: string) {
  const [found] = await tx
    .select({ name: companies.name })
    .from(companies)
    .where(eq(companies.id, id));
  return { id, name: found?.name ?? null };
}

async function readCounts(tx: Executor, companyId: string | undefined) {
  const countOf = async (table: typeof companies | typeof meters, owner: PgColumn) => {
    const [row] = await tx
      .select({ rows: count() })
      .from(table)
      .where(and(isNull(table.deletedAt), isOf(owner, companyId)));
    return row?.rows ?? 0;
  };
  const [counted] = await tx
    .select({ rows: count() })
    .from(bills)
    .where(isOf(bills.companyId, companyId));
  return {
    companies: await countOf(companies, companies.id),
    meters: await countOf(meters, meters.companyId),
    bills: counted?.rows ?? 0,
  };
}

async function readUndated(tx: Executor, companyId: string | undefined) {
  const { commodity, units, usage, month } = monthlyUsage;
  const { rows: cost } = await tx.execute<{
    currency: string | null;
    cost: string | null;
    bills: number;
  }>(sql`
    with undated as (
      select currency, cost, bill_ids
      from analytics.monthly_cost
      where ${whereOf(companyId)} and month is null
    )
    select
      currency,
      sum(cost) as cost,
      (
        select count(distinct bill_id)::int
        from undated u
          cross join unnest(u.bill_ids) as b(bill_id)
        where u.currency is not distinct from undated.currency
      ) as bills
    from undated
    group by 1
    order by 1`);
  return {
    cost,
    usage: await tx
      .select({ commodity, units, usage: sum(usage) })
      .from(monthlyUsage)
      .where(and(isOf(monthlyUsage.companyId, companyId), isNull(month), isNotNull(usage)))
      .groupBy(commodity, units)
      .orderBy(commodity, units),
  };
}

/**
 * Reads the covered parts of all days of all meters, by bills and by readings, rounded down: 1 is all. A month without readings between two of its meter counts, too.
 * It is filled in beside the one before it: the planner cannot guess how many there are to join.
 */
async function readCoverage(tx: Executor, companyId: string | undefined) {
  const { rows } = await tx.execute<{
    month: string;
    bills: string | null;
    readings: string | null;
  }>(sql`
    with billed as (
      select
        month,
        trunc(sum(days_covered)::numeric / sum(days_in_month), 4) as part
      from analytics.monthly_usage
      where ${whereOf(companyId)}
        and month is not null
      group by month
    ), meter_months as (
      select
        meter_id,
        month,
        max(covered_seconds) as covered,
        max(month_seconds) as seconds
      from analytics.interval_coverage
      where ${whereOf(companyId)}
      group by meter_id, month
    ), followed as (
      select
        *,
        lead(month) over (partition by meter_id order by month) as next_month
      from meter_months
    ), every_month as (
      select
        filled.month::date as month,
        case when filled.month = f.month then f.covered else 0 end as covered,
        case
          when filled.month = f.month then f.seconds
          else extract(epoch from filled.month + interval '1 month' - filled.month)
        end as seconds
      from followed f
        cross join lateral generate_series(
          f.month::timestamp,
          coalesce(f.next_month - interval '1 month', f.month),
          interval '1 month'
        ) as filled (month)
    ), read as (
      select
        month,
        trunc(sum(covered) / sum(seconds), 4) as part
      from every_month
      group by month
    )
    select
      month::text as month,
      billed.part as bills,
      read.part as readings
    from billed
      full join read using (month)
    order by month`);
  return rows;
}

/**
 * Reads the mean kW of the meters together by hour and weekday, of how many meters that is, and how
 * many have readings of power. A meter with few readings would raise the hours that it has and no
 * others, so only meters with readings of 95 % of the hours of the week count, or of as many as the
 * meter with most of them.
 */
async function readLoad(tx: Executor, companyId: string | undefined) {
  const { rows: profiles } = await tx.execute<{
    /** 1 is Monday. */
    weekday: number;
    hour: number;
    kw: string | null;
    meters: number;
    metersOfAll: number;
  }>(sql`
    with profiles as (
      select
        *,
        hours_with_power >= 0.95 * max(hours_with_power) over () as is_whole
      from analytics.load_profile
      where ${whereOf(companyId)}
        and coalesce(net_metering_type, '') not in ('EXPORT', 'GENERATION')
        and hours_with_power > 0
    ), counted as (
      select
        count(distinct meter_id) filter (where is_whole)::int as meters,
        count(distinct meter_id)::int as meters_of_all
      from profiles
    )
    select
      weekday,
      hour,
      round(sum(average_kw) filter (where is_whole), 3) as kw,
      meters,
      meters_of_all as "metersOfAll"
    from profiles
      cross join counted
    group by weekday, hour, meters, meters_of_all
    order by weekday, hour`);
  const { meters = 0, metersOfAll = 0 } = profiles[0] ?? {};
  const hours = profiles.map(({ weekday, hour, kw }) => ({ weekday, hour, kw }));
  return { hours, meters, metersOfAll };
}

/** Counts sites by the time zone of their days and hours; `default` is UTC, for those without a known zone. */
async function readTimeZones(tx: Executor, companyId: string | undefined) {
  const { timeZone, source } = siteTimeZones;
  return await tx
    .select({ timeZone, source, sites: count() })
    .from(siteTimeZones)
    .innerJoin(sites, eq(sites.id, siteTimeZones.siteId))
    .where(and(isNull(sites.deletedAt), isOf(sites.companyId, companyId)))
    .groupBy(timeZone, source)
    .orderBy(desc(count()), timeZone, source);
}

/** Whether a row of a view of analytics is of the company of the report. */
const whereOf = (companyId: string | undefined): SQL =>
  companyId === undefined ? sql`true` : sql`company_id = ${companyId}::uuid`;
