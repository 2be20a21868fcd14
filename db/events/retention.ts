import { sql } from 'drizzle-orm';
import { type Database, withTransaction } from '../connection/connect.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';

export interface PayloadsDropped {
  readonly dropped: number;
  /** When the last event that was looked at was received; null when no later one is old enough. */
  readonly last: string | null;
}

/**
 * Examines the `limit` oldest events with payloads that were received after `after` and more than `days` ago,
 * and drops the payloads of the settled ones. Their rows stay, so that a late delivery still finds its id.
 * Pending, dead and missing events keep their bytes at any age, because no other copy exists.
 */
export async function dropPayloads(
  db: Database,
  { days, limit, after = null }: { days: number; limit: number; after?: string | null },
): Promise<PayloadsDropped> {
  return await withTransaction(db, async (tx) => {
    // Else the planner may sort all old events for each batch: it knows neither how many there are, nor how
    // many still have a payload.
    await tx.execute(sql`
      select set_config('enable_sort', 'off', true),
        set_config('enable_bitmapscan', 'off', true),
        set_config('enable_seqscan', 'off', true)`);
    const { rows } = await tx.execute<{ dropped: number; looked: number; last: string | null }>(sql`
      with old as materialized (
        select ${journal.id},
          ${journal.receivedAt}
        from ${journal}
        where ${journal.payloadDroppedAt} is null
          and ${journal.receivedAt} > coalesce(${after}::timestamptz, '-infinity')
          and ${journal.receivedAt} < clock_timestamp() - make_interval(days => ${days}::int)
        order by ${journal.receivedAt}
        fetch first ${limit} rows with ties
      ),
      dropped as (
        update ${journal}
        set payload_dropped_at = clock_timestamp()
        where ${journal.id} = any(array(select id from old))
          and ${journal.payloadDroppedAt} is null
          and ${journal.outcome} in ('applied', 'superseded', 'ignored')
        returning ${journal.id}
      ),
      gone as (
        delete from ${eventPayloads}
        where ${eventPayloads.id} = any(array(select id from dropped))
      )
      select (select count(*) from dropped)::int as dropped,
        count(*)::int as looked,
        max(old.received_at) as last
      from old`);
    const { dropped = 0, looked = 0, last = null } = rows[0] ?? {};
    return { dropped, last: looked < limit ? null : last };
  });
}
