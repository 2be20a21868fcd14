import { sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { catchUpOf } from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { catchUps, journal, settlements, staleRecords } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';
import { isDeletion } from './items.ts';

/**
 * Makes the records of events stale, and wakes sleeping catch-ups; returns the kinds of those.
 * Events older than the last read state, or covered by a tombstone, are superseded at once: of a
 * document if its usage was read since. A page read for another document has none of it.
 * This is the last statement on records: their rows are locked by now, so the later of two groups
 * sees what the earlier one wrote.
 */
export async function noteStale(tx: Executor, eventIds: readonly string[]): Promise<CatchUpKind[]> {
  const result = await hot(tx, 'noteStale').execute<{ wake: CatchUpKind }>(sql`
    with reported as materialized (
      select
        e.kind,
        case e.kind when 'interval' then e.id else e.record_id end as record_id,
        coalesce(e.company_id::text, e.record_id) as owner,
        e.recorded_at,
        e.occurred_at,
        case e.kind
          when 'document' then not ${isDeletion(sql`e.type`)} and (
            select e.occurred_at < d.raw_updated and d.usage_read_at >= d.synced_at
              or d.deleted_reason = 'event' and e.occurred_at <= d.updated
            from ${documents} d
            where d.id = e.record_id::uuid
          )
          when 'connection' then (
            select e.occurred_at < c.raw_updated
            from ${connections} c
            where c.id = e.record_id::uuid
          )
        end is true as superseded
      from ${journal} e
      where e.id = any(${array(eventIds, 'text')})
        and e.arrived_as = 'pending'
    ), settled as (
      insert into ${settlements}
        (kind, record_id, owner, since, read_at, shown, outcome, updates_only)
      select
        kind,
        record_id,
        min(owner),
        min(recorded_at),
        max(recorded_at),
        max(occurred_at),
        'superseded',
        true
      from reported
      where superseded
      group by kind, record_id
    ), stale as (
      insert into ${staleRecords} as s
        (kind, record_id, owner, events, since, last_event_at, wanted, due_at)
      select
        kind,
        record_id,
        (array_agg(owner order by occurred_at desc, owner))[1],
        count(*),
        min(recorded_at),
        max(recorded_at),
        max(occurred_at),
        min(recorded_at)
      from reported
      where not superseded
      group by kind, record_id
      order by kind, record_id
      on conflict (key) do update set
        owner = case when excluded.wanted >= s.wanted then excluded.owner else s.owner end,
        events = s.events + excluded.events,
        since = least(s.since, excluded.since),
        last_event_at = greatest(s.last_event_at, excluded.last_event_at),
        wanted = greatest(s.wanted, excluded.wanted),
        due_at = least(s.due_at, excluded.due_at)
      returning s.kind
    ), woken as (
      update ${catchUps} set awake = true
      where not awake
        and kind in (select ${catchUpOf(sql`kind`)} from stale)
      returning kind
    )
    select kind as wake
    from woken`);
  return result.rows.map((row) => row.wake);
}
