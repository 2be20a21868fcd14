import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { PgSelect, PgTable } from 'drizzle-orm/pg-core';
import { limits } from '../../contract/limits.ts';
import type { Executor } from '../connection/connect.ts';
import { estimateRows } from '../connection/estimate.ts';

/** How many rows a count reads: one more than a report can say. */
export const mostCounted = limits.countMax + 1;

/** The same for exact counts: no table has so many rows that somebody counts. */
export const allCounted = 2_000_000_000;

/** Cuts a sum off at the most that is counted. */
export const cut = (sum: SQLWrapper, most: number): SQL<number> =>
  sql<number>`least(${sum}, ${most}::bigint)::int`;

/** Rows of a table, which an index has to serve in this order; an order that nobody needs keeps the planner on the index. */
const rowsOf = (db: Executor, table: PgTable, where?: SQL): PgSelect =>
  db
    .select({ one: sql`1`.as('one') })
    .from(table)
    .where(where)
    .$dynamic();

/** Counts the rows of a table up to `most`. */
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

/** Counts the rows of a table below `most`; of more, the planner estimates how many there are. */
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
