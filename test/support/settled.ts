import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../db/connection/connect.ts';

/** Settles the pending events of the journal `e` that `which` selects, without others of their records. */
export async function settleAs(
  db: Executor,
  outcome: 'applied' | 'superseded' | 'missing' | 'dead',
  which: SQL,
): Promise<void> {
  await db.execute(sql`
    update metersync.journal e
    set outcome = ${outcome}, settled_at = clock_timestamp(), queue = null, due_at = null, attempts = 20, error = 'why'
    where outcome = 'pending' and ${which}`);
}
