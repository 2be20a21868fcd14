import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../db/connection/connect.ts';

/**
 * Settles the waiting events of the journal `e` that `which` selects, as if their records had been read or
 * given up. Other events of the same records are left alone.
 */
export async function settleAs(
  db: Executor,
  outcome: 'applied' | 'superseded' | 'missing' | 'dead',
  which: SQL,
): Promise<void> {
  await db.execute(sql`
    with settled as (
      insert into metersync.settlements (kind, record_id, owner, since, read_at, shown, outcome, attempts, error)
      select kind, case kind when 'interval' then id else record_id end, coalesce(company_id::text, record_id),
        recorded_at, recorded_at, coalesce(occurred_at, 'infinity'), ${outcome}::text, 20, 'why'
      from metersync.journal e
      where arrived_as = 'pending' and ${which}
      returning kind, record_id
    )
    delete from metersync.stale_records s using settled d
    where s.kind = d.kind and s.record_id = d.record_id`);
}
