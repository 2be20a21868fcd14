import { sql } from 'drizzle-orm';
import type { Database } from '../../db/connection/connect.ts';
import { until } from './poll.ts';

/** Waits until this number of sessions of the database wait for a lock; `what` says so in the error. */
export async function untilLocked(db: Database, what: string, sessions = 1): Promise<void> {
  await until(what, async () => {
    const { rowCount } = await db.execute(sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`);
    return rowCount === sessions;
  });
}
