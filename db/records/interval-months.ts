import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor, Warehouse } from '../connection/connect.ts';

/** Creates missing partitions for months, such as `2026-01`; known months need no statement. */
export async function ensureMonths(
  { db, intervalMonths }: Warehouse,
  months: ReadonlySet<string>,
): Promise<void> {
  const unknown = [...months].filter((month) => !intervalMonths.has(month));
  if (unknown.length === 0) return;
  const starts = unknown.map((month) => `${month}-01T00:00:00Z`);
  await makeMonths(db, sql`unnest(${array(starts, 'timestamptz')}) as t (start_at)`);
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
