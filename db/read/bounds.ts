import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { PgSelect, PgTable } from 'drizzle-orm/pg-core';
import { limits } from '../../contract/limits.ts';
import type { Executor } from '../connection/connect.ts';

/** How much one page of the console reads. */
export const consoleBounds = {
  /** Rows of a list. Further rows are on further pages. */
  rows: 50,
  /** Deletions of a run that a page shows for a decision. The command lists all. */
  deletedRows: 1_000,
  /** Events that a page of events searches if few match its filter. Each takes a few look-ups. */
  searchedMax: 4_000,
  /** Events of the last day, the newest ones, that the overview counts by outcome. */
  arrivalsMax: 20_000,
  /** Connections that need attention among which a page finds the oldest, with 3 look-ups each. */
  connectionsMax: 4_000,
} as const;

/** Maximum number of rows that a count reads: one more than reports show. */
export const mostCounted = limits.countMax + 1;

/** The maximum for exact counts: no counted table has so many rows. */
export const allCounted = 2_000_000_000;

/** Selects the rows of a table. */
const rowsOf = (db: Executor, table: PgTable, where?: SQL): PgSelect =>
  db
    .select({ one: sql`1`.as('one') })
    .from(table)
    .where(where)
    .$dynamic();

/** Counts rows up to `most`. With an order, the planner stays on the index that has the order. */
export const countUpTo = async (
  db: Executor,
  table: PgTable,
  most: number,
  where?: SQL,
  ...order: SQLWrapper[]
): Promise<number> => {
  const rows = rowsOf(db, table, where).orderBy(...order.map((by) => sql`${by}`));
  return await db.$count(rows.limit(most).as('counted'));
};

/** Seconds since a time, by the warehouse's clock. */
export const secondsSince = (time: SQLWrapper): SQL<number> =>
  sql<number>`extract(epoch from clock_timestamp() - ${time})::float8`;

/** Counts the rows of a table if there are fewer than `most`; otherwise the planner estimates. */
export async function aboutCount(
  db: Executor,
  table: PgTable,
  most: number,
  where?: SQL,
): Promise<number> {
  const count = await countUpTo(db, table, most, where);
  if (count < most) return count;
  return Math.max(count, await estimateRows(db, rowsOf(db, table, where)));
}

/** Asks the planner how many rows a query has, from table sizes and the last statistics. */
async function estimateRows(db: Executor, query: SQLWrapper): Promise<number> {
  const { rows } = await db.execute<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
    sql`explain (format json) ${query}`,
  );
  return rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
}
