import {
  and,
  count,
  countDistinct,
  desc,
  eq,
  gt,
  isNotNull,
  isNull,
  max,
  type SQL,
  sql,
  sum,
} from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { oneRow } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { companies, meters, sites } from '../schema/utility.ts';
import {
  billCorrections,
  bills,
  freshness,
  intervalCoverage,
  loadProfile,
  monthlyCost,
  monthlyUsage,
  siteTimeZones,
} from '../schema/views.ts';
import { costByMonth, monthOf, monthsOf, usageByMonth } from './company-months.ts';

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
  const [clock] = await tx.select({ madeAt: utc<string>(sql`now()`) }).from(oneRow);
  const madeAt = clock?.madeAt ?? '';
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
  const ofCompanies = and(isNull(companies.deletedAt), isOf(companies.id, companyId));
  const ofMeters = and(isNull(meters.deletedAt), isOf(meters.companyId, companyId));
  return {
    companies: await tx.$count(companies, ofCompanies),
    meters: await tx.$count(meters, ofMeters),
    bills: await tx.$count(bills, isOf(bills.companyId, companyId)),
  };
}

async function readUndated(tx: Executor, companyId: string | undefined) {
  const { commodity, units, usage, month } = monthlyUsage;
  const { currency, cost, billIds } = monthlyCost;
  const undated = and(isOf(monthlyCost.companyId, companyId), isNull(monthlyCost.month));
  const costs = await tx
    .select({ currency, cost: sum(cost) })
    .from(monthlyCost)
    .where(undated)
    .groupBy(currency)
    .orderBy(currency);
  const billsOf = await tx
    .select({ currency, bills: countDistinct(sql`bill`) })
    .from(monthlyCost)
    .crossJoin(sql`unnest(${billIds}) as bill_ids (bill)`)
    .where(undated)
    .groupBy(currency);
  return {
    cost: costs.map((row) => ({
      ...row,
      bills: billsOf.find((one) => one.currency === row.currency)?.bills ?? 0,
    })),
    usage: await tx
      .select({ commodity, units, usage: sum(usage) })
      .from(monthlyUsage)
      .where(and(isOf(monthlyUsage.companyId, companyId), isNull(month), isNotNull(usage)))
      .groupBy(commodity, units)
      .orderBy(commodity, units),
  };
}

/**
 * Reads by month which part of all meters' days bills and readings cover, rounded down: 1 is all. A
 * month without readings counts if its meter has readings before and after it.
 */
async function readCoverage(tx: Executor, companyId: string | undefined) {
  const { month, daysCovered, daysInMonth } = monthlyUsage;
  const billed = await tx
    .select({
      month: sql<string>`${month}`,
      part: sql<string>`trunc(sum(${daysCovered})::numeric / sum(${daysInMonth}), 4)`,
    })
    .from(monthlyUsage)
    .where(and(isOf(monthlyUsage.companyId, companyId), isNotNull(month)))
    .groupBy(month);
  const { meterId, month: monthRead, coveredSeconds, monthSeconds } = intervalCoverage;
  const followed = tx
    .select({
      meterId,
      month: monthRead,
      covered: max(coveredSeconds).as('covered'),
      seconds: max(monthSeconds).as('seconds'),
      next: sql`lead(${monthRead}) over (partition by ${meterId} order by ${monthRead})`.as(
        'next_month',
      ),
    })
    .from(intervalCoverage)
    .where(isOf(intervalCoverage.companyId, companyId))
    .groupBy(meterId, monthRead)
    .as('followed');
  const isRead = sql`filled.month = ${followed.month}`;
  // Each month with readings generates the months without readings that follow it. They are not
  // joined to a calendar, because the planner cannot estimate how many there are.
  const read = await tx
    .select({
      month: sql<string>`filled.month::date`,
      part: sql<string>`trunc(
        sum(case when ${isRead} then ${followed.covered} else 0 end)
        / sum(
          case
            when ${isRead} then ${followed.seconds}
            else extract(epoch from filled.month + interval '1 month' - filled.month)
          end
        ),
        4
      )`,
    })
    .from(followed)
    .crossJoin(sql`generate_series(
      ${followed.month}::timestamp,
      coalesce(${followed.next} - interval '1 month', ${followed.month}),
      interval '1 month'
    ) as filled (month)`)
    .groupBy(sql`filled.month`);
  const partOf = (rows: typeof read, of: string) =>
    rows.find((row) => row.month === of)?.part ?? null;
  return [...new Set([...billed, ...read].map((row) => row.month))].toSorted().map((of) => ({
    month: of,
    bills: partOf(billed, of),
    readings: partOf(read, of),
  }));
}

/**
 * Reads the mean kW of all meters by hour and weekday, the number of meters in this sum, and of
 * meters with readings of power. A meter with few readings would raise only some hours, so it
 * counts only if it covers at least 95 % as many hours of the week as the meter with the most.
 */
async function readLoad(tx: Executor, companyId: string | undefined) {
  const { meterId, weekday, hour, averageKw, hoursWithPower, netMeteringType } = loadProfile;
  const profiles = tx.$with('profiles').as(
    tx
      .select({
        meterId,
        weekday,
        hour,
        averageKw,
        isWhole: sql`${hoursWithPower} >= 0.95 * max(${hoursWithPower}) over ()`.as('is_whole'),
      })
      .from(loadProfile)
      .where(
        and(
          isOf(loadProfile.companyId, companyId),
          sql`coalesce(${netMeteringType}, '') not in ('EXPORT', 'GENERATION')`,
          gt(hoursWithPower, 0),
        ),
      ),
  );
  const counted = tx
    .select({
      meters: sql<number>`count(distinct meter_id) filter (where is_whole)::int`.as('meters'),
      ofAll: sql<number>`count(distinct meter_id)::int`.as('meters_of_all'),
    })
    .from(profiles)
    .as('counted');
  const hours = await tx
    .with(profiles)
    .select({
      /** 1 is Monday. */
      weekday: profiles.weekday,
      hour: profiles.hour,
      kw: sql<string | null>`round(sum(${profiles.averageKw}) filter (where is_whole), 3)`,
      meters: counted.meters,
      metersOfAll: counted.ofAll,
    })
    .from(profiles)
    .crossJoin(counted)
    .groupBy(profiles.weekday, profiles.hour, counted.meters, counted.ofAll)
    .orderBy(profiles.weekday, profiles.hour);
  const { meters = 0, metersOfAll = 0 } = hours[0] ?? {};
  return {
    hours: hours.map(({ weekday, hour, kw }) => ({ weekday, hour, kw })),
    meters,
    metersOfAll,
  };
}

/** Counts sites by time zone; `default` is UTC, for sites without a known zone. */
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

/** Maximum number of months in a chart. */
export const monthsMax = 24;
const listedMax = 25;

/** Whether a row belongs to the report's company; undefined for a report of all companies. */
export const isOf = (column: PgColumn, companyId: string | undefined): SQL | undefined =>
  companyId === undefined ? undefined : eq(column, companyId);

/** Formats a time as whole seconds in UTC, for people. */
export const utc = <T>(time: SQL) =>
  sql<T>`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

export async function readCorrections(tx: Executor, companyId: string | undefined) {
  const { billId, provider, invoiceId, changedAt, change, currency } = billCorrections;
  const { fields, costChange, reason } = billCorrections;
  const ofCompany = isOf(billCorrections.companyId, companyId);
  const month = sql<string>`to_char(${changedAt} at time zone 'UTC', 'YYYY-MM-01')`;
  return {
    byMonth: everyMonth(
      await tx
        .select({ month, bills: countDistinct(billId) })
        .from(billCorrections)
        .where(ofCompany)
        .groupBy(sql`1`)
        .orderBy(sql`1`),
    ),
    /** By what changed (corrected, moved, superseded, deleted or restored) and currency. */
    byChange: await tx
      .select({ what: change, currency, bills: countDistinct(billId), change: sum(costChange) })
      .from(billCorrections)
      .where(ofCompany)
      .groupBy(change, currency)
      .orderBy(change, currency),
    latest: await tx
      .select({
        billId,
        provider,
        invoiceId,
        changedAt: utc<string>(sql`${changedAt}`),
        what: change,
        /** Fields of the bill that changed; empty if another document changed. */
        fields,
        currency,
        change: costChange,
        reason,
      })
      .from(billCorrections)
      .where(ofCompany)
      .orderBy(desc(changedAt), billId, currency)
      .limit(listedMax),
  };
}

export async function readFreshness(tx: Executor, companyId: string | undefined) {
  const { isLate, causeOfLateness, publishedUntil, collectedAt, appliedAt } = freshness;
  const cause = sql<string>`coalesce(${causeOfLateness}, 'unknown')`;
  const causes = await tx
    .select({
      late: isLate,
      cause,
      connections: count(),
      publishedUntil: sql<string | null>`max(${publishedUntil})::text`,
      collectedAt: utc<string | null>(sql`max(${collectedAt})`),
      appliedAt: utc<string | null>(sql`max(${appliedAt})`),
    })
    .from(freshness)
    .where(isOf(freshness.companyId, companyId))
    .groupBy(isLate, cause)
    .orderBy(desc(count()), cause);
  const ofCompanies = await tx
    .select({ events: sql<number>`max(${freshness.pendingEvents})` })
    .from(freshness)
    .where(isOf(freshness.companyId, companyId))
    .groupBy(freshness.companyId);
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
    pendingEvents: ofCompanies.reduce((sum, { events }) => sum + events, 0),
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
