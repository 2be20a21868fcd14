import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { goneSites, listsSites, relatedSites, serveSites } from '../records/connection-sites.ts';
import type { WrittenRows } from '../records/page.ts';
import { upsertEvents } from '../records/upsert.ts';
import { indexable, resources } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import { connectionStatusChanges, connections } from '../schema/utility.ts';
import { eventItems, writeEvents } from './items.ts';

/**
 * Applies events to connections. Each change of status that an event reports is also a row of
 * history; several events of one change share it.
 */
export async function applyConnections(
  tx: Executor,
  eventIds: readonly string[],
): Promise<WrittenRows> {
  const events = sql`${eventItems('connection', eventIds)}, changed as (
    insert into ${connectionStatusChanges} as s (connection_id, old_status, status, at, event_id)
    select distinct on (connection_id, at, status)
      record_id::uuid as connection_id,
      r #>> '{old,status}' as old_status,
      ${indexable(sql`r ->> 'status'`)} as status,
      occurred_at as at,
      event_id
    from item
    where ${indexable(sql`r ->> 'status'`)} is not null
      and (type = 'connection.created.v2' or r #>> '{old,status}' is not null)
    order by connection_id, at, status, event_id
    on conflict (connection_id, at, status) do update set
      old_status = coalesce(s.old_status, excluded.old_status),
      event_id = excluded.event_id
    where excluded.event_id < s.event_id
  )`;
  return await writeEvents(tx, upsertEvents(resources.connections, events));
}

/**
 * Applies the sites that events list to connections whose records may not list them (service-facts
 * 2). The newest event with a list wins, even if the record was read before the event came. The
 * connections' rows are locked by now, so the later of two groups sees the other's events.
 */
export async function applyConnectionSites(
  tx: Executor,
  eventIds: readonly string[],
): Promise<void> {
  await hot(tx, 'applyConnectionSites').execute(sql`
    with ${eventItems('connection', eventIds)}, latest as (
      select distinct on (record_id) record_id, occurred_at, r -> 'sitesRelations' as relations
      from item
      where ${listsSites(sql`r`)}
      order by record_id, occurred_at desc, r -> 'sitesRelations' desc
    ), listing as (
      select c.id as connection_id, l.relations
      from latest l
        join ${connections} c on c.id = l.record_id::uuid
      where (${listsSites(sql`c.raw`)} is not true or c.raw_updated < l.occurred_at)
        and not exists (
          select from ${journal} e
          where e.record_id = l.record_id
            and e.kind = 'connection'
            and case
              when e.occurred_at > l.occurred_at
                then e.payload is null or ${listsSites(sql`e.payload`)}
              when e.occurred_at = l.occurred_at
                then e.payload -> 'sitesRelations' > l.relations
            end
        )
    ), ${relatedSites}, ${goneSites}${serveSites}`);
}
