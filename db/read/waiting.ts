import { sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';
import { staleRecords } from '../schema/metersync.ts';

/** Counts stale records, up to `most` + 1. */
export async function recordsWaiting(db: Executor, most: number): Promise<number> {
  const { rows } = await db.execute<{ waiting: number }>(sql`
    select count(*)::int as waiting
    from (
      select
      from ${staleRecords}
      limit ${most + 1}
    ) counted`);
  return rows[0]?.waiting ?? 0;
}
