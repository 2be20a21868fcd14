import { sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import { keyOf, refreshStale } from '../catch-up/stale.ts';
import type { Executor } from '../connect.ts';
import { catchUps, events, journal, settlements, staleRecords } from '../schema/metersync.ts';
import { connections, documents, usageData } from '../schema/utility.ts';

/**
 * Makes the records of events stale, and wakes sleeping catch-ups; returns the kinds of those.
 * Events older than the last read state, or covered by a tombstone, are superseded at once. So are
 * waiting and missing events of the documents in `deleted`, whose usage goes with them. A deletion
 * that waits has taken effect, and waits for its company alone.
 * This is the last statement on records: their rows are locked by now, so the later of two groups
 * sees what the earlier one wrote.
 */
export async function noteStale(
  tx: Executor,
  eventIds: readonly string[],
  deleted: readonly string[],
): Promise<CatchUpKind[]> {
  const result = await tx.execute<{ wake: CatchUpKind | null; refresh: string | null }>(sql`
    with reported as materialized (
      select
        e.kind,
        case e.kind when 'interval' then e.id else e.record_id end as record_id,
        coalesce(e.company_id::text, e.record_id) as owner,
        e.recorded_at,
        e.occurred_at,
        case e.kind
          when 'document' then e.type <> 'document.deleted.v2' and (
            select e.occurred_at < d.raw_updated
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
    ), gone as materialized (
      select d.id, d.id::text as record_id, d.updated, d.deleted_at
      from unnest(${array([...deleted].sort(), 'uuid')}) as named (id)
        cross join lateral (
          select id, updated, deleted_at
          from ${documents}
          where id = named.id and deleted_reason = 'event'
          offset 0
        ) d
    ), retired as (
      update ${usageData} u set
        deleted_at = g.deleted_at,
        deleted_reason = 'document'
      from gone g
      where u.id = any(array(
          select theirs.id
          from gone
            cross join lateral (
              select id
              from ${usageData}
              where document_id = gone.id and deleted_at is null
              offset 0
            ) theirs
          order by theirs.id
        ))
        and u.document_id = g.id
        and u.deleted_at is null
    ), waited as materialized (
      select g.record_id, s.owner, s.since, s.last_event_at, g.updated
      from gone g
        cross join lateral (
          select owner, since, last_event_at
          from ${staleRecords}
          where key = ${keyOf('document', sql`g.record_id`)}
          for update
        ) s
      where exists (
        select from ${events} e
        where e.record_id = g.record_id
          and e.recorded_at >= s.since
          and e.kind = 'document'
          and e.outcome = 'pending'
          and e.type <> 'document.deleted.v2'
          and e.occurred_at <= g.updated
        offset 0
      )
    ), superseded as (
      select
        kind,
        record_id,
        min(owner) as owner,
        min(recorded_at) as since,
        max(recorded_at) as read_at,
        max(occurred_at) as shown
      from reported
      where superseded
      group by kind, record_id
      union all
      select 'document', record_id, owner, since, last_event_at, updated
      from waited
      union all
      select 'document', g.record_id, missing.owner, missing.since, missing.read_at, g.updated
      from gone g
        cross join lateral (
          select owner, since, read_at, outcome
          from ${settlements}
          where kind = 'document' and record_id = g.record_id
          offset 0
        ) missing
      where missing.outcome = 'missing'
    ), settled as (
      insert into ${settlements}
        (kind, record_id, owner, since, read_at, shown, outcome, updates_only)
      select kind, record_id, owner, since, read_at, shown, 'superseded', true
      from superseded
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
      -- Reads "waited" before its rows are changed here: else they would be skipped.
      where not superseded
        and (select count(*) from waited) >= 0
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
        and kind in (select kind || 's' from stale)
      returning kind
    )
    select kind as wake, null as refresh
    from woken
    union all
    select null, record_id
    from waited`);
  const refresh = result.rows.flatMap((row) => row.refresh ?? []);
  if (refresh.length > 0) await refreshStale(tx, 'document', refresh);
  return result.rows.flatMap((row) => row.wake ?? []);
}
