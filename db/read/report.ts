import { type SQL, sql } from 'drizzle-orm';
import type { Severity } from '../../contract/names.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { dataIssues } from '../schema/ops.ts';
import { companies, meters, sites } from '../schema/utility.ts';
import { gravity } from './issues.ts';
import { monthOf, monthsOf } from './months.ts';

/** Amounts are text, as Postgres has them; months are first days (YYYY-MM-DD). */
export interface Report {
  /** When the report was read. */
  readonly madeAt: string;
  /** The company of the report; null for all. */
  readonly company: { readonly id: string; readonly name: string | null } | null;
  readonly counts: { readonly companies: number; readonly meters: number; readonly bills: number };
  /**
   * Every month of the charts, also those without data; the last is not later than the month of
   * `madeAt`.
   */
  readonly months: readonly string[];
  /** One row per month and currency, oldest month first. */
  readonly cost: readonly {
    readonly month: string;
    readonly currency: string | null;
    readonly cost: string | null;
  }[];
  /** One row per month, commodity and unit, oldest month first. */
  readonly usage: readonly MonthlyUsage[];
  /** What no month has, as it has no dates: by currency, and by commodity and unit. */
  readonly undated: {
    readonly cost: readonly UndatedCost[];
    readonly usage: readonly UndatedUsage[];
  };
  /** Covered parts of all days of all meters, from 0 to 1: by bills and by readings. */
  readonly coverage: readonly {
    readonly month: string;
    readonly bills: string | null;
    readonly readings: string | null;
  }[];
  /**
   * Sites by the time zone of their days and hours; `default` is UTC, for sites without a known
   * zone.
   */
  readonly timeZones: readonly {
    readonly timeZone: string;
    readonly source: 'site' | 'company' | 'default';
    readonly sites: number;
  }[];
  readonly load: Load;
  readonly corrections: {
    readonly byMonth: readonly { readonly month: string; readonly bills: number }[];
    /** One row per kind of change and currency: corrected, moved, superseded, deleted or restored. */
    readonly byChange: readonly {
      readonly what: string;
      readonly currency: string | null;
      readonly bills: number;
      readonly change: string | null;
    }[];
    readonly latest: readonly Correction[];
  };
  /** The first connections, those that need a person first; `total` counts all. */
  readonly attention: { readonly total: number; readonly connections: readonly NeedingAttention[] };
  /** Open issues by check, the gravest first. */
  readonly issues: readonly OpenIssues[];
  readonly freshness: Freshness;
}

/** Mean power by hour and weekday of the meters that have readings of nearly all these hours. */
export interface Load {
  /** Mean kW of the meters together; weekday 1 is Monday. */
  readonly hours: readonly {
    readonly weekday: number;
    readonly hour: number;
    readonly kw: string | null;
  }[];
  /** How many meters these are, and how many have readings of power at all. */
  readonly meters: number;
  readonly metersOfAll: number;
}

export interface OpenIssues {
  readonly checkName: string;
  readonly severity: Severity;
  readonly what: string;
  /** Open issues that nobody acknowledged, and those that somebody did. */
  readonly open: number;
  readonly acknowledged: number;
}

export interface MonthlyUsage {
  readonly month: string;
  readonly commodity: string | null;
  readonly units: string | null;
  readonly usage: string | null;
  readonly meters: number;
}

export interface UndatedCost {
  readonly currency: string | null;
  readonly cost: string | null;
  readonly bills: number;
}

export type UndatedUsage = Pick<MonthlyUsage, 'commodity' | 'units' | 'usage'>;

export interface Correction {
  readonly billId: string;
  readonly provider: string | null;
  readonly invoiceId: string | null;
  readonly changedAt: string;
  /** corrected, moved, superseded, deleted or restored. */
  readonly what: string;
  /** Fields of the bill that changed; none if another document changed. */
  readonly fields: readonly string[];
  readonly currency: string | null;
  readonly change: string | null;
  readonly reason: string | null;
}

export interface NeedingAttention {
  readonly connectionId: string;
  readonly company: string | null;
  readonly provider: string | null;
  readonly status: string | null;
  readonly since: string | null;
  readonly whatToDo: string;
  readonly dataUntil: string | null;
}

export interface Freshness {
  readonly connections: number;
  readonly late: number;
  /** Late connections by cause of the lateness. */
  readonly byCause: readonly { readonly cause: string; readonly connections: number }[];
  /** The newest time of each clock, over all connections. */
  readonly publishedUntil: string | null;
  readonly collectedAt: string | null;
  readonly appliedAt: string | null;
  readonly pendingEvents: number;
}

/** Most months of a chart. */
const monthsMax = 24;
const listedMax = 25;
/** Connections that need attention: a person goes through all of them. */
const attentionMax = 500;

/**
 * Reads a report in one transaction. Load profile and coverage read every reading: for all
 * companies together, with millions of readings, that takes a minute.
 * @param onProgress receives the part that is read next
 */
export async function readReport(
  db: Database,
  companyId?: string,
  onProgress: (part: string) => void = () => {},
): Promise<Report> {
  return await withTransaction(db, (tx) => readWithin(tx, companyId, onProgress), {
    isolationLevel: 'repeatable read',
    accessMode: 'read only',
  });
}

async function readWithin(
  tx: Executor,
  companyId: string | undefined,
  onProgress: (part: string) => void,
): Promise<Report> {
  const where = companyId === undefined ? sql`true` : sql`company_id = ${companyId}::uuid`;
  const rows = async <T>(query: SQL): Promise<T[]> => (await tx.execute(query)).rows as T[];
  const part = <T>(name: string, read: () => Promise<T>): Promise<T> => {
    onProgress(name);
    return read();
  };
  const [clock] = await rows<{ madeAt: string }>(sql`select ${utc(sql`now()`)} as "madeAt"`);
  const { madeAt } = clock as { madeAt: string };
  const [company] =
    companyId === undefined
      ? []
      : await rows<{ name: string | null }>(
          sql`select name from ${companies} where id = ${companyId}::uuid`,
        );
  const parts = {
    madeAt,
    company: companyId === undefined ? null : { id: companyId, name: company?.name ?? null },
    counts: await readCounts(rows, where, companyId),
    cost: await part('cost by month', () => readCost(rows, where)),
    usage: await part('usage by month', () => readUsage(rows, where)),
    undated: await part('bills without dates', () => readUndated(rows, where)),
    coverage: await part('coverage of bills and readings', () => readCoverage(rows, where)),
    timeZones: await readTimeZones(rows, companyId),
    load: await part('load profile', () => readLoad(rows, where)),
    corrections: await part('corrections', () => readCorrections(rows, where)),
    attention: await part('connections', () => readAttention(rows, where)),
    issues: await part('issues', () => readIssues(rows, where)),
    freshness: await part('freshness', () => readFreshness(rows, where)),
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
    months,
    cost: inMonths(parts.cost),
    usage: inMonths(parts.usage),
    coverage: inMonths(parts.coverage),
  };
}

type Rows = <T>(query: SQL) => Promise<T[]>;

async function readCounts(
  rows: Rows,
  where: SQL,
  companyId: string | undefined,
): Promise<Report['counts']> {
  const [counts] = await rows<Report['counts']>(sql`
    select
      (
        select count(*)::int
        from ${companies}
        where deleted_at is null
          and ${companyId === undefined ? sql`true` : sql`id = ${companyId}::uuid`}
      ) as companies,
      (
        select count(*)::int
        from ${meters}
        where deleted_at is null
          and ${where}
      ) as meters,
      (
        select count(*)::int
        from analytics.bills
        where ${where}
      ) as bills`);
  return counts as Report['counts'];
}

function readCost(rows: Rows, where: SQL): Promise<Report['cost'][number][]> {
  return rows(sql`
    select month::text as month, currency, sum(cost) as cost
    from analytics.monthly_cost
    where ${where} and month is not null
    group by 1, 2
    order by 1, 2`);
}

function readUsage(rows: Rows, where: SQL): Promise<MonthlyUsage[]> {
  return rows(sql`
    select
      month::text as month,
      datasource_type as commodity,
      units,
      sum(usage) as usage,
      count(distinct meter_id) filter (where days_covered > 0)::int as meters
    from analytics.monthly_usage
    where ${where} and month is not null
    group by 1, 2, 3
    order by 1, 2, 3`);
}

async function readUndated(rows: Rows, where: SQL): Promise<Report['undated']> {
  return {
    cost: await rows(sql`
      with undated as (
        select currency, cost, bill_ids
        from analytics.monthly_cost
        where ${where} and month is null
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
      order by 1`),
    usage: await rows(sql`
      select datasource_type as commodity, units, sum(usage) as usage
      from analytics.monthly_usage
      where ${where} and month is null and usage is not null
      group by 1, 2
      order by 1, 2`),
  };
}

/**
 * Shares are rounded down: 1 is all. A month without readings between two of its meter counts, too.
 * It is filled in beside the one before it: the planner cannot guess how many there are to join.
 */
function readCoverage(rows: Rows, where: SQL): Promise<Report['coverage'][number][]> {
  return rows(sql`
    with billed as (
      select
        month,
        trunc(sum(days_covered)::numeric / sum(days_in_month), 4) as part
      from analytics.monthly_usage
      where ${where}
        and month is not null
      group by month
    ), meter_months as (
      select
        meter_id,
        month,
        max(covered_seconds) as covered,
        max(month_seconds) as seconds
      from analytics.interval_coverage
      where ${where}
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
}

function readTimeZones(
  rows: Rows,
  companyId: string | undefined,
): Promise<Report['timeZones'][number][]> {
  return rows(sql`
    select z.time_zone as "timeZone", z.time_zone_source as source, count(*)::int as sites
    from analytics.site_time_zones z
      join ${sites} s on s.id = z.site_id
    where s.deleted_at is null and ${companyId === undefined ? sql`true` : sql`s.company_id = ${companyId}::uuid`}
    group by 1, 2
    order by 3 desc, 1, 2`);
}

/**
 * A meter with few readings would raise the hours that it has and no others, so only meters with
 * readings of 95 % of the hours of the week count, or of as many as the meter with most of them.
 */
async function readLoad(rows: Rows, where: SQL): Promise<Load> {
  const profiles = await rows<Load['hours'][number] & Omit<Load, 'hours'>>(sql`
    with profiles as (
      select
        *,
        hours_with_power >= 0.95 * max(hours_with_power) over () as is_whole
      from analytics.load_profile
      where ${where}
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

function readIssues(rows: Rows, where: SQL): Promise<OpenIssues[]> {
  return rows(sql`
    select
      check_name as "checkName",
      i.severity,
      coalesce(what, '') as what,
      count(*) filter (where acknowledged_at is null)::int as open,
      count(acknowledged_at)::int as acknowledged
    from ${dataIssues} i
      left join ops.data_issue_checks using (check_name)
    where closed_at is null and ${where}
    group by 1, 2, 3
    order by ${gravity(sql`i.severity`)}, 4 desc, 1`);
}

async function readCorrections(rows: Rows, where: SQL): Promise<Report['corrections']> {
  return {
    byMonth: everyMonth(
      await rows<{ month: string; bills: number }>(sql`
        select to_char(changed_at at time zone 'UTC', 'YYYY-MM-01') as month, count(distinct bill_id)::int as bills
        from analytics.bill_corrections
        where ${where}
        group by 1
        order by 1`),
    ),
    byChange: await rows(sql`
      select
        c.change as what,
        currency,
        count(distinct bill_id)::int as bills,
        sum(cost_change) as change
      from analytics.bill_corrections c
      where ${where}
      group by 1, 2
      order by 1, 2`),
    latest: await rows(sql`
      select
        bill_id as "billId",
        provider,
        invoice_id as "invoiceId",
        ${utc(sql`changed_at`)} as "changedAt",
        c.change as what,
        fields,
        currency,
        cost_change as change,
        reason
      from analytics.bill_corrections c
      where ${where}
      order by changed_at desc, bill_id, currency
      limit ${listedMax}`),
  };
}

async function readAttention(rows: Rows, where: SQL): Promise<Report['attention']> {
  const listed = await rows<NeedingAttention & { total: number }>(sql`
    select connection_id as "connectionId", company, provider, status, ${utc(sql`since`)} as since, what_to_do as "whatToDo",
      data_until::text as "dataUntil", count(*) over ()::int as total
    from analytics.connections_needing_attention where ${where}
    order by customer_must_act desc, connections_needing_attention.since nulls last, connection_id limit ${attentionMax}`);
  return {
    total: listed[0]?.total ?? 0,
    connections: listed.map(({ total: _, ...connection }) => connection),
  };
}

async function readFreshness(rows: Rows, where: SQL): Promise<Freshness> {
  const causes = await rows<
    { cause: string | null; late: boolean; connections: number } & Clocks
  >(sql`
    select is_late as late, coalesce(cause_of_lateness, 'unknown') as cause, count(*)::int as connections,
      max(utility_published_until)::text as "publishedUntil", ${utc(sql`max(service_collected_at)`)} as "collectedAt",
      ${utc(sql`max(applied_at)`)} as "appliedAt"
    from analytics.freshness where ${where} group by 1, 2 order by 3 desc, 2`);
  const [pending] = await rows<{ events: number }>(
    sql`select coalesce(sum(events), 0)::int as events
      from (select max(pending_events) as events from analytics.freshness where ${where} group by company_id) of_company`,
  );
  const late = causes.filter((row) => row.late);
  const sum = (of: readonly { connections: number }[]) =>
    of.reduce((total, row) => total + row.connections, 0);
  const newest = (clock: keyof Clocks) =>
    causes.reduce<string | null>((latest, row) => {
      const at = row[clock];
      return at !== null && (latest === null || at > latest) ? at : latest;
    }, null);
  return {
    connections: sum(causes),
    late: sum(late),
    byCause: late.map(({ cause, connections }) => ({ cause: cause ?? 'unknown', connections })),
    publishedUntil: newest('publishedUntil'),
    collectedAt: newest('collectedAt'),
    appliedAt: newest('appliedAt'),
    pendingEvents: pending?.events ?? 0,
  };
}

interface Clocks {
  readonly publishedUntil: string | null;
  readonly collectedAt: string | null;
  readonly appliedAt: string | null;
}

/** Formats a time as whole seconds in UTC, for people. */
const utc = (time: SQL): SQL =>
  sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

/** Returns the first day of a time's month, in UTC. */
/** Fills the latest months: one without a row has no corrections. */
function everyMonth(
  rows: readonly { month: string; bills: number }[],
): { month: string; bills: number }[] {
  const latest = rows.at(-1)?.month ?? '';
  return monthsOf(rows, latest, monthsMax).map((month) => ({
    month,
    bills: rows.find((row) => row.month === month)?.bills ?? 0,
  }));
}
