import { type SQL, sql } from 'drizzle-orm';
import { limits } from '../../contract/limits.ts';
import type { Executor } from '../connection/connect.ts';

/** How many rows a count reads: one more than a report can say. */
export const mostCounted = limits.countMax + 1;

/** The same for exact counts: no table has so many rows that somebody counts. */
export const allCounted = 2_000_000_000;

/** Cuts a sum off at the most that is counted. */
export const cut = (sum: SQL, most: number): SQL => sql`least(${sum}, ${most}::bigint)::int`;

/** Counts the rows of `from …`, which an index has to serve. */
export const countOf = (from: SQL, most: number): SQL => sql`(
        select count(*)::int
        from (
          select
          ${from}
          limit ${most}
        ) counted
      )`;

/**
 * Counts the rows of `from …` below `most`; of more, the planner estimates how many there are from
 * the table's size now and its last statistics.
 */
export async function aboutCount(db: Executor, from: SQL, most: number): Promise<number> {
  const { rows } = await db.execute<{ count: number }>(sql`select ${countOf(from, most)} as count`);
  const count = rows[0]?.count ?? 0;
  if (count < most) return count;
  const explained = await db.execute<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(sql`
    explain (format json)
    select
    ${from}`);
  return Math.max(count, explained.rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0);
}
