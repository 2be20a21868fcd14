import { sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { catchUpOf } from '../catch-up/stale.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { type RecordedEvent, recorded } from '../events/items.ts';
import { settledAs } from '../events/settling.ts';
import { catchUps, journal, staleRecords } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';

/**
 * Makes the records of events stale, and marks sleeping catch-ups as awake; returns their kinds,
 * for the caller to wake. Events older than the state last read, or covered by the tombstone of an
 * event, are superseded at once. For a document that was read, its usage must have been read, too:
 * a page read for another document contains none of it. This statement comes after all writes to
 * records, whose rows are locked by now, so that the later of two groups sees what the earlier
 * group wrote. It runs for each group of events. Measured: 0.11 ms and 13 blocks for a lone event;
 * 0.58 ms and 132 blocks for a group of eight.
 */
export async function noteStale(
  tx: Executor,
  events: readonly RecordedEvent[],
): Promise<CatchUpKind[]> {
  const result = await hot(tx, 'noteStale').execute<{ wake: CatchUpKind }>(sql`
    with reported as materialized (
      select
        e.event_id,
        e.kind,
        case e.kind when 'interval' then e.event_id else e.record_id end as record_id,
        coalesce(e.owner::text, e.record_id) as owner,
        e.recorded_at,
        e.occurred_at,
        case e.kind
          when 'document' then not e.deletes and (
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
      from (select * from ${recorded(events)}) e
    ), settled as (
      update ${journal} set
        ${settledAs(sql`'superseded'`)}
      where id = any(array(select event_id from reported where superseded))
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
