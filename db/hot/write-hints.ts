import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { fixed } from '../connection/fixed.ts';
import { hot } from '../connection/hot.ts';
import { areReplaced, eventItems, type RecordedEvent } from '../events/items.ts';
import type { WrittenRows } from '../records/page.ts';
import { tableOf } from '../resources.ts';
import { connectionStatusChanges } from '../schema/utility.ts';

/** A step that stores the changes of status that events report, one row for each change. */
const changesOfStatus: SQL = sql`changed as (
    insert into ${connectionStatusChanges} as s (connection_id, old_status, status, at, event_id)
    select distinct on (connection_id, at, status)
      record_id::uuid as connection_id,
      r #>> '{old,status}' as old_status,
      metersync.indexable(r ->> 'status') as status,
      occurred_at as at,
      event_id
    from item
    where metersync.indexable(r ->> 'status') is not null
      and (type = 'connection.created.v2' or r #>> '{old,status}' is not null)
    order by connection_id, at, status, event_id
    on conflict (connection_id, at, status) do update set
      old_status = coalesce(s.old_status, excluded.old_status),
      event_id = excluded.event_id
    where excluded.event_id < s.event_id
  ), `;

/** Whether an event may say which site a document belongs to whose record was read without a site. */
const saysSite: SQL = sql`
      or excluded.hint_updated = held.raw_updated
        and excluded.site_id <> coalesce(held.site_id, '00000000-0000-0000-0000-000000000000')
        and not excluded.hint_deletes
        and (select said.site_id from metersync.read_document(held.raw) said) is null`;

const mergedInto = (resource: 'connections' | 'documents', replaced: boolean): SQL => sql`hints as (
    select distinct on (id)
      record_id::uuid as id,
      owner,
      event_id,
      r as hint,
      occurred_at as updated,
      deletes,
      recorded_at as came,
      ${replaced ? sql`replaced` : sql`null::jsonb as replaced`}
    from item
    order by id, updated desc, deletes desc, hint desc, came desc, event_id desc
  )
  insert into ${tableOf(resource)} as held
    (id, company_id, hint_event_id, hint, hint_updated, hint_deletes, hint_came, unreadable)
  select id, owner, event_id, hint, updated, deletes, came, replaced
  from hints
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
      end
      ${resource === 'documents' ? saysSite : sql``}`;

/**
 * Merges what events announce into the rows of their records: the later state wins, then a deletion,
 * then the greater payload, so that the order of the events decides nothing. A row without a record
 * gets one, also for a deletion, so that no late event or page restores it. The triggers of the
 * tables compute the columns (service.md 2.5). It runs for each group of events, and the resource
 * decides its table. Measured: 0.43 ms and 25 blocks for a lone event; 4.3 ms and 57 blocks in
 * groups of eight, with waits for locks.
 */
export async function writeHints(
  tx: Executor,
  resource: 'connections' | 'documents',
  events: readonly RecordedEvent[],
): Promise<WrittenRows> {
  const replaced = areReplaced(events);
  const { rows } = await hot(tx, 'writeHints').execute<{ inserted: boolean }>(sql`
    with ${eventItems(events)},
    ${resource === 'connections' ? changesOfStatus : sql``}
    ${fixed(`hints of ${resource}, ${replaced}`, () => mergedInto(resource, replaced))}
    returning xmax = 0 as inserted`);
  const inserted = rows.filter((row) => row.inserted).length;
  return { inserted, changed: rows.length - inserted };
}
