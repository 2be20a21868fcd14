import { count, countDistinct, desc, eq, type SQL, sql, sum } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { Executor } from '../connection/connect.ts';
import { monthsOf } from './company-months.ts';
import { billCorrections, freshness } from './views.ts';

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
