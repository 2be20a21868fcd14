import { sql } from 'drizzle-orm';
import type { Executor } from '../../db/connect.ts';

/** Whether an event is pending or a backfill runs. Polls ask it, so it asks nothing else, as a status does. */
export async function isWorkLeft(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ left: boolean }>(sql`
    select
      exists (select from metersync.events where outcome = 'pending')
      or exists (
        select from metersync.runs
        where kind = 'full' and company_id is null and resource is null and finished_at is null
      ) as left`);
  return rows[0]?.left ?? true;
}
