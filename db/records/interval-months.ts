import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Warehouse } from '../connection/connect.ts';
import type { IntervalColumns } from './interval-text.ts';

/**
 * Creates the partitions of the months in which readings start. Plain times begin with their month,
 * so partitions known to exist are not created again.
 */
export async function ensureMonths(
  warehouse: Warehouse,
  columns: IntervalColumns,
  plain: boolean,
): Promise<void> {
  const { db, intervalMonths } = warehouse;
  const months = plain
    ? new Set(columns.startAt.map((start) => start.slice(0, 7)))
    : new Set<string>();
  const unknown = [...months].filter((month) => !intervalMonths.has(month));
  const starts = plain ? unknown.map((month) => `${month}-01T00:00:00Z`) : columns.startAt;
  if (starts.length === 0) return;
  await db.execute(sql`
    select metersync.ensure_interval_month(month)
    from (
      select distinct date_trunc('month', metersync.read_time(s), 'UTC') as month
      from unnest(${array(starts, 'text')}) s
      order by month
    ) months`);
  for (const month of unknown) intervalMonths.add(month);
}
