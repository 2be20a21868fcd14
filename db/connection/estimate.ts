import { type SQLWrapper, sql } from 'drizzle-orm';
import type { Executor } from './connect.ts';

/** Asks the planner how many rows a query has, from table sizes and the last statistics. */
export async function estimateRows(db: Executor, query: SQLWrapper): Promise<number> {
  const { rows } = await db.execute<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
    sql`explain (format json) ${query}`,
  );
  return rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
}
