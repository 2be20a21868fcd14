import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor, Warehouse } from '../connection/connect.ts';
import type { IntervalColumns } from './interval-text.ts';

/** Creates missing partitions for readings; plain times in known months need no statement. */
export async function ensureMonths(
  { db, intervalMonths }: Warehouse,
  columns: IntervalColumns,
  plain: boolean,
): Promise<void> {
  const months = plain
    ? new Set(columns.startAt.map((start) => start.slice(0, 7)))
    : new Set<string>();
  const unknown = [...months].filter((month) => !intervalMonths.has(month));
  const starts = plain ? unknown.map((month) => `${month}-01T00:00:00Z`) : columns.startAt;
  if (starts.length === 0) return;
  await makeMonths(
    db,
    sql`unnest(${array(starts, 'text')}) start
      cross join lateral (select metersync.read_time(start) as start_at) times`,
  );
  for (const month of unknown) intervalMonths.add(month);
}

/** Creates the partitions of the months in which the times `start_at` of a table lie. */
export async function makeMonths(db: Executor, starts: SQL): Promise<void> {
  const months = db
    .selectDistinct({ month: sql`date_trunc('month', start_at, 'UTC')`.as('month') })
    .from(starts)
    .orderBy(sql`month`)
    .as('months');
  await db.select({ made: sql`metersync.ensure_interval_month(month)` }).from(months);
}
