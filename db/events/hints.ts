import { type SQL, sql } from 'drizzle-orm';
import type { DecodedEvent } from '../../contract/event.ts';
import { unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { listsSites } from '../records/connection-sites.ts';
import type { WrittenRows } from '../records/page.ts';
import { tableOf } from '../resources.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';
import { connectionStatusChanges, connections } from '../schema/utility.ts';

/** An event just inserted into the journal, with its times as the warehouse printed them. */
export interface RecordedEvent {
  readonly id: string;
  readonly event: DecodedEvent;
  readonly occurredAt: string | null;
  readonly recordedAt: string;
  /** The texts that were replaced in the payload, by their paths, as JSON; absent if there are none. */
  readonly replaced?: string | undefined;
}

/**
 * Merges what events announce into the rows of their records: the later state wins, then a deletion,
 * then the greater payload, so that the order of the events decides nothing. A row without a record
 * gets one, also for a deletion, so that no late event or page restores it. The triggers of the
 * tables compute the columns (service.md 2.5).
 */
export async function writeHints(
  tx: Executor,
  resource: 'connections' | 'documents',
  events: readonly RecordedEvent[],
): Promise<WrittenRows> {
  const { rows } = await prepared(tx, 'writeHints').execute<{ inserted: boolean }>(sql`
    with ${said(events)}${resource === 'connections' ? changesOfStatus : sql``}, hint as (
      select distinct on (id)
        record_id::uuid as id, owner, event_id, payload, occurred_at, deletes, recorded_at,
        replaced::jsonb
      from said
      order by
        id, occurred_at desc, deletes desc, payload desc, recorded_at desc, event_id desc
    )
    insert into ${tableOf(resource)} as held
      (id, company_id, hint_event_id, hint, hint_updated, hint_deletes, hint_came, unreadable)
    select id, owner, event_id, payload, occurred_at, deletes, recorded_at, replaced
    from hint
    order by id
    on conflict (id) do update set
      hint_event_id = excluded.hint_event_id,
      hint = excluded.hint,
      hint_updated = excluded.hint_updated,
      hint_deletes = excluded.hint_deletes,
      hint_came = excluded.hint_came,
      hint_settled_at = null,
      unreadable = excluded.unreadable,
      absent_since = case when excluded.hint_updated <= held.updated then held.absent_since end,
      absent_by = case when excluded.hint_updated <= held.updated then held.absent_by end
    where held.updated is null
      or case
        when held.hint is not null
        then (excluded.hint_updated, excluded.hint_deletes, excluded.hint)
          > (held.hint_updated, held.hint_deletes, held.hint)
        else excluded.hint_updated > held.updated
          or excluded.hint_updated = held.updated
            and excluded.hint_deletes
            and held.deleted_reason is distinct from 'event'
      end${resource === 'documents' ? saysSite : sql``}
    returning xmax = 0 as inserted`);
  const inserted = rows.filter((row) => row.inserted).length;
  return { inserted, changed: rows.length - inserted };
}

/** Events with their payloads, as a step. */
const said = (events: readonly RecordedEvent[]): SQL => sql`said as materialized (
      select t.*, p.payload
      from ${unnested('t', events, [
        ['event_id', 'text', ({ id }) => id],
        ['record_id', 'text', ({ event }) => event.recordId],
        ['owner', 'uuid', ({ event }) => event.companyId],
        ['type', 'text', ({ event }) => event.type],
        ['deletes', 'boolean', ({ event }) => event.deletes],
        ['occurred_at', 'timestamptz', ({ occurredAt }) => occurredAt],
        ['recorded_at', 'timestamptz', ({ recordedAt }) => recordedAt],
        ['replaced', 'text', ({ replaced }) => replaced ?? null],
      ])}
        join ${eventPayloads} p on p.id = t.event_id
    )`;

/** A step that stores the changes of status that events report, one row for each change. */
const changesOfStatus = sql`, changed as (
      insert into ${connectionStatusChanges} as s (connection_id, old_status, status, at, event_id)
      select distinct on (connection_id, at, status)
        record_id::uuid as connection_id,
        payload #>> '{old,status}' as old_status,
        metersync.indexable(payload ->> 'status') as status,
        occurred_at as at,
        event_id
      from said
      where metersync.indexable(payload ->> 'status') is not null
        and (type = 'connection.created.v2' or payload #>> '{old,status}' is not null)
      order by connection_id, at, status, event_id
      on conflict (connection_id, at, status) do update set
        old_status = coalesce(s.old_status, excluded.old_status),
        event_id = excluded.event_id
      where excluded.event_id < s.event_id
    )`;

/** Whether an event may say which site a document belongs to whose record was read without a site. */
const saysSite = sql`
      or excluded.hint_updated = held.raw_updated
        and excluded.site_id <> coalesce(held.site_id, '00000000-0000-0000-0000-000000000000')
        and not excluded.hint_deletes
        and (select said.site_id from metersync.read_document(held.raw) said) is null`;

/**
 * Applies the sites that events list to connections whose records may not list them. The newest
 * event with a list wins, even if the record was read before the event came. The connections' rows
 * are locked by now, so the later of two groups sees the events of the earlier group.
 */
export async function applyConnectionSites(
  tx: Executor,
  events: readonly RecordedEvent[],
): Promise<void> {
  await prepared(tx, 'applyConnectionSites').execute(sql`
    with ${said(events)}, latest as (
      select distinct on (record_id)
        record_id, occurred_at, payload -> 'sitesRelations' as relations
      from said
      where ${listsSites(sql`payload`)}
      order by record_id, occurred_at desc, payload -> 'sitesRelations' desc
    )
    select metersync.store_sites(c.id, l.relations)
    from latest l
      join ${connections} c on c.id = l.record_id::uuid
    where (${listsSites(sql`c.raw`)} is not true or c.raw_updated < l.occurred_at)
      and not exists (
        select from ${journal} e
          left join ${eventPayloads} p on p.id = e.id and e.occurred_at >= l.occurred_at
        where e.record_id = l.record_id
          and e.kind = 'connection'
          and case
            when e.occurred_at > l.occurred_at
            then p.payload is null or ${listsSites(sql`p.payload`)}
            when e.occurred_at = l.occurred_at
            then p.payload -> 'sitesRelations' > l.relations
          end
      )
    order by c.id`);
}
