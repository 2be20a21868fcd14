import { eq, type SQL, sql } from 'drizzle-orm';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { companies, meters, sites } from '../schema/utility.ts';
import { costByMonth, isOf, monthOf, monthsOf, usageByMonth } from './company-months.ts';

/** Maximum number of months in a chart. */
const monthsMax = 24;
const listedMax = 25;

/** Amounts are text, as Postgres prints them. A month is its first day (YYYY-MM-DD). */
export type Report = Awaited<ReturnType<typeof readReport>>;

/**
 * Reads a report in one transaction. Load profile and coverage read every reading: for all
 * companies together, with millions of readings, that takes a minute.
 * @param onProgress receives the name of the part that is read next
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
  const clock = await tx.execute<{ now: string }>(sql`select ${utc(sql`now()`)} as now`);
  const madeAt = clock.rows[0]?.now ?? '';
  const parts = {
    /** When the report was read. */
    madeAt,
    /** The company of the report; null for all. */
    company: companyId === undefined ? null : await readCompany(tx, companyId),
    counts: await readCounts(tx, companyId),
    cost: await part('cost by month', () => costByMonth(tx, companyId)),
    usage: await part('usage by month', () => usageByMonth(tx, companyId)),
    /** Cost by currency, and usage by commodity and unit, that have no dates and thus no month. */
    undated: await part('bills without dates', () => readUndated(tx, companyId)),
    coverage: await part('coverage of bills and readings', () => readCoverage(tx, companyId)),
    timeZones: await readTimeZones(tx, companyId),
    load: await part('load profile', () => readLoad(tx, companyId)),
    corrections: await part('corrections', () => readCorrections(tx, companyId)),
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
    /** Every month of the charts up to the month of `madeAt`, including months without data. */
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
  type Counts = { companies: number; meters: number; bills: number };
  const isCompany = companyId === undefined ? sql`true` : sql`id = ${companyId}::uuid`;
  const { rows } = await tx.execute<Counts>(sql`
    select
      (select count(*)::int from ${companies} where deleted_at is null and ${isCompany})
        as companies,
      (select count(*)::int from ${meters} where deleted_at is null and ${isOf(companyId)})
        as meters,
      (select count(*)::int from analytics.bills where ${isOf(companyId)}) as bills`);
  return rows[0] ?? { companies: 0, meters: 0, bills: 0 };
}

async function readUndated(tx: Executor, companyId: string | undefined) {
  type Cost = { currency: string | null; cost: string | null; bills: number };
  const cost = await tx.execute<Cost>(sql`
    with undated as (
      select currency, cost, bill_ids
      from analytics.monthly_cost
      where month is null and ${isOf(companyId)}
    )
    select
      currency,
      sum(cost) as cost,
      (
        select count(distinct bill)::int
        from undated u
          cross join unnest(u.bill_ids) as bill_ids (bill)
        where u.currency is not distinct from undated.currency
      ) as bills
    from undated
    group by currency
    order by currency`);
  type Usage = { commodity: string | null; units: string | null; usage: string | null };
  const usage = await tx.execute<Usage>(sql`
    select commodity, units, sum(usage) as usage
    from analytics.monthly_usage
    where month is null and usage is not null and ${isOf(companyId)}
    group by commodity, units
    order by commodity, units`);
  return { cost: cost.rows, usage: usage.rows };
}

/**
 * Reads by month which part of all meters' days bills and readings cover, rounded down: 1 is all. A
 * month without readings counts if its meter has readings before and after it.
 */
async function readCoverage(tx: Executor, companyId: string | undefined) {
  type Coverage = { month: string; bills: string | null; readings: string | null };
  const { rows } = await tx.execute<Coverage>(sql`
    with billed as (
      select month, trunc(sum(days_covered)::numeric / sum(days_in_month), 4) as bills
      from analytics.monthly_usage
      where month is not null and ${isOf(companyId)}
      group by month
    ), followed as (
      select
        month,
        max(covered_seconds) as covered,
        max(month_seconds) as seconds,
        lead(month) over (partition by meter_id order by month) as next_month
      from analytics.interval_coverage
      where ${isOf(companyId)}
      group by meter_id, month
    ), read as (
      -- Each month with readings generates the months without readings that follow it. They are not
      -- joined to a calendar, because the planner cannot estimate how many there are.
      select
        filled.month::date as month,
        trunc(
          sum(case when filled.month = followed.month then covered else 0 end)
            / sum(
              case
                when filled.month = followed.month then seconds
                else extract(epoch from filled.month + interval '1 month' - filled.month)
              end
            ),
          4
        ) as readings
      from followed
        cross join generate_series(
          followed.month::timestamp,
          coalesce(next_month - interval '1 month', followed.month),
          interval '1 month'
        ) as filled (month)
      group by filled.month
    )
    select month, bills, readings
    from billed
      full join read using (month)
    order by month`);
  return rows;
}

/**
 * Reads the mean kW of all meters by hour and weekday, the number of meters in this sum, and of
 * meters with readings of power. A meter with few readings would raise only some hours, so it
 * counts only if it covers at least 95 % as many hours of the week as the meter with the most.
 */
async function readLoad(tx: Executor, companyId: string | undefined) {
  type Hour = {
    /** 1 is Monday. */
    weekday: number;
    hour: number;
    kw: string | null;
  };
  const { rows } = await tx.execute<Hour & { meters: number; metersOfAll: number }>(sql`
    with profiles as (
      select
        meter_id, weekday, hour, average_kw,
        hours_with_power >= 0.95 * max(hours_with_power) over () as is_whole
      from analytics.load_profile
      where hours_with_power > 0
        and coalesce(net_metering_type, '') not in ('EXPORT', 'GENERATION')
        and ${isOf(companyId)}
    ), counted as (
      select
        (count(distinct meter_id) filter (where is_whole))::int as meters,
        count(distinct meter_id)::int as of_all
      from profiles
    )
    select
      weekday, hour,
      round(sum(average_kw) filter (where is_whole), 3) as kw,
      counted.meters,
      counted.of_all as "metersOfAll"
    from profiles
      cross join counted
    group by weekday, hour, counted.meters, counted.of_all
    order by weekday, hour`);
  const { meters = 0, metersOfAll = 0 } = rows[0] ?? {};
  return {
    hours: rows.map(({ weekday, hour, kw }) => ({ weekday, hour, kw })),
    meters,
    metersOfAll,
  };
}

/** Counts sites by time zone; `default` is UTC, for sites without a known zone. */
async function readTimeZones(tx: Executor, companyId: string | undefined) {
  type Zone = { timeZone: string; source: 'site' | 'company' | 'default'; sites: number };
  const ofCompany = companyId === undefined ? sql`true` : sql`s.company_id = ${companyId}::uuid`;
  const { rows } = await tx.execute<Zone>(sql`
    select z.time_zone as "timeZone", z.time_zone_source as source, count(*)::int as sites
    from analytics.site_time_zones z
      join ${sites} s on s.id = z.site_id
    where s.deleted_at is null and ${ofCompany}
    group by z.time_zone, z.time_zone_source
    order by count(*) desc, z.time_zone, z.time_zone_source`);
  return rows;
}

async function readCorrections(tx: Executor, companyId: string | undefined) {
  const months = await tx.execute<{ month: string; bills: number }>(sql`
    select to_char(changed_at at time zone 'UTC', 'YYYY-MM-01') as month,
      count(distinct bill_id)::int as bills
    from analytics.bill_corrections
    where ${isOf(companyId)}
    group by 1
    order by 1`);
  type Change = { what: string; currency: string | null; bills: number; change: string | null };
  const changes = await tx.execute<Change>(sql`
    select
      change as what, currency,
      count(distinct bill_id)::int as bills,
      sum(cost_change) as change
    from analytics.bill_corrections c
    where ${isOf(companyId)}
    group by c.change, currency
    order by c.change, currency`);
  type Correction = {
    billId: string;
    provider: string | null;
    invoiceId: string | null;
    changedAt: string;
    what: string;
    /** Fields of the bill that changed; empty if another document changed. */
    fields: string[];
    currency: string | null;
    change: string | null;
    reason: string | null;
  };
  const latest = await tx.execute<Correction>(sql`
    select
      c.bill_id as "billId",
      c.provider,
      c.invoice_id as "invoiceId",
      ${utc(sql`c.changed_at`)} as "changedAt",
      c.change as what,
      c.fields, c.currency,
      c.cost_change as change,
      c.reason
    from analytics.bill_corrections c
    where ${isOf(companyId)}
    order by c.changed_at desc, c.bill_id, c.currency
    limit ${listedMax}`);
  return {
    byMonth: everyMonth(months.rows),
    /** By what changed (corrected, moved, superseded, deleted or restored) and currency. */
    byChange: changes.rows,
    latest: latest.rows,
  };
}

async function readFreshness(tx: Executor, companyId: string | undefined) {
  type Cause = {
    late: boolean;
    cause: string;
    connections: number;
    publishedUntil: string | null;
    collectedAt: string | null;
    appliedAt: string | null;
  };
  const { rows: causes } = await tx.execute<Cause>(sql`
    select
      is_late as late,
      coalesce(cause_of_lateness, 'unknown') as cause,
      count(*)::int as connections,
      max(utility_published_until)::text as "publishedUntil",
      ${utc(sql`max(service_collected_at)`)} as "collectedAt",
      ${utc(sql`max(applied_at)`)} as "appliedAt"
    from analytics.freshness
    where ${isOf(companyId)}
    group by 1, 2
    order by connections desc, cause`);
  const { rows: pending } = await tx.execute<{ events: number }>(sql`
    select coalesce(sum(events), 0)::int as events
    from (
      select max(pending_events) as events
      from analytics.freshness
      where ${isOf(companyId)}
      group by company_id
    ) of_companies`);
  const late = causes.filter((row) => row.late);
  const total = (of: readonly { connections: number }[]) =>
    of.reduce((connections, row) => connections + row.connections, 0);
  const newest = (clock: 'publishedUntil' | 'collectedAt' | 'appliedAt') =>
    causes
      .flatMap((row) => row[clock] ?? [])
      .toSorted()
      .at(-1) ?? null;
  return {
    connections: total(causes),
    late: total(late),
    /** Late connections by cause of the lateness. */
    byCause: late.map(({ cause, connections }) => ({ cause, connections })),
    /** The newest time of each clock, over all connections. */
    publishedUntil: newest('publishedUntil'),
    collectedAt: newest('collectedAt'),
    appliedAt: newest('appliedAt'),
    pendingEvents: pending[0]?.events ?? 0,
  };
}

/** Lists the latest months, including months without corrections, which have no row. */
function everyMonth(
  rows: readonly { month: string; bills: number }[],
): { month: string; bills: number }[] {
  const latest = rows.at(-1)?.month ?? '';
  return monthsOf(rows, latest, monthsMax).map((month) => ({
    month,
    bills: rows.find((row) => row.month === month)?.bills ?? 0,
  }));
}

/** Formats a time as whole seconds in UTC, for people. */
const utc = (time: SQL): SQL =>
  sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
