import { sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { refreshStale } from '../stale.ts';

/**
 * Notes the records that events leave to be read again, and wakes the catch-ups that sleep; returns the kinds of those. Events
 * of a state that is older than what was last read, or that a tombstone covers, wait for nothing: they are superseded. A
 * deletion that waits took its effect, and waits for its company alone.
 *
 * It is the last statement on records: their rows are locked by then, so that of two groups the later one sees what the
 * earlier one made of them.
 */
export async function noteStale(tx: Executor, eventIds: readonly string[]): Promise<CatchUpKind[]> {
  const result = await tx.execute<{ kind: CatchUpKind }>(sql`
    with told as materialized (
      select e.kind, case e.kind when 'interval' then e.id else e.record_id end as record_id,
        coalesce(e.company_id::text, e.record_id) as owner, e.recorded_at, e.occurred_at,
        case e.kind
          when 'document' then e.type <> 'document.deleted.v2' and (
            select e.occurred_at < d.raw_updated or (d.deleted_reason = 'event' and e.occurred_at <= d.updated)
            from utility.documents d
            where d.id = e.record_id::uuid)
          when 'connection' then (
            select e.occurred_at < c.raw_updated
            from utility.connections c
            where c.id = e.record_id::uuid)
        end is true as superseded
      from metersync.journal e
      where e.id = any(${array(eventIds, 'text')}) and e.arrived_as = 'pending'
    ), settled as (
      insert into metersync.settlements (kind, record_id, owner, read_at, shown, outcome, updates_only)
      select kind, record_id, min(owner), max(recorded_at), max(occurred_at), 'superseded', true
      from told
      where superseded
      group by kind, record_id
    ), stale as (
      insert into metersync.stale_records as s
        (kind, record_id, owner, events, since, told_at, wanted, due_at)
      select kind, record_id, (array_agg(owner order by occurred_at desc, owner))[1], count(*),
        min(recorded_at), max(recorded_at), max(occurred_at), min(recorded_at)
      from told
      where not superseded
      group by kind, record_id
      order by kind, record_id
      on conflict (kind, record_id) do update set
        owner = case when excluded.wanted >= s.wanted then excluded.owner else s.owner end,
        events = s.events + excluded.events, since = least(s.since, excluded.since),
        told_at = greatest(s.told_at, excluded.told_at), wanted = greatest(s.wanted, excluded.wanted),
        due_at = least(s.due_at, excluded.due_at)
      returning s.kind
    )
    update metersync.catch_ups set awake = true
    where not awake and kind in (select kind || 's' from stale)
    returning kind`);
  return result.rows.map(({ kind }) => kind);
}

/**
 * Settles what waited for documents that are deleted now, or had been given up: the tombstone takes with it whatever
 * was told of them before.
 */
export async function supersedeDeleted(tx: Executor, documentIds: readonly string[]): Promise<void> {
  const result = await tx.execute<{ record_id: string }>(sql`
    with gone as materialized (
      select d.id::text as record_id, d.updated
      from unnest(${array([...documentIds].sort(), 'uuid')}) as told (id) cross join lateral (
        select id, updated from utility.documents
        where id = told.id and deleted_reason = 'event' offset 0
      ) d
    ), told as materialized (
      select g.record_id, s.owner, s.told_at as read_at, g.updated, true as waited
      from gone g cross join lateral (
        select owner, since, told_at from metersync.stale_records
        where kind = 'document' and record_id = g.record_id
        for update
      ) s
      where exists (
        select from metersync.events e
        where e.record_id = g.record_id and e.recorded_at >= s.since and e.kind = 'document'
          and e.outcome = 'pending' and e.type <> 'document.deleted.v2' and e.occurred_at <= g.updated)
      union all
      select g.record_id, x.owner, x.read_at, g.updated, false
      from gone g cross join lateral (
        select owner, read_at from metersync.settlements
        where kind = 'document' and record_id = g.record_id and outcome = 'missing' offset 0
      ) x
    ), settled as (
      insert into metersync.settlements (kind, record_id, owner, read_at, shown, outcome, updates_only)
      select 'document', record_id, owner, read_at, updated, 'superseded', true from told
    )
    select record_id from told where waited`);
  if (result.rows.length === 0) return;
  await refreshStale(
    tx,
    'document',
    result.rows.map(({ record_id }) => record_id),
  );
}
