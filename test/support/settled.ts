import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../db/connection/connect.ts';

/** Settles the waiting events of the journal `e` that `which` selects, without others of their records. */
export async function settleAs(
  db: Executor,
  outcome: 'applied' | 'superseded' | 'missing' | 'dead',
  which: SQL,
): Promise<void> {
  await db.execute(sql`
    with settled as (
      update metersync.journal e
      set outcome = ${outcome}, settled_at = clock_timestamp(), attempts = 20, error = 'why'
      where outcome = 'pending' and ${which}
      returning kind, case kind when 'interval' then id else record_id end as record_id
    )
    delete from metersync.stale_records s using settled d
    where s.kind = d.kind and s.record_id = d.record_id`);
}
