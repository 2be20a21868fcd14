import { type SQL, sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/**
 * Connection events update at once what they carry: newer `updated` wins. A tie between events is broken by their
 * content, the same way whatever the order; against a state that the API told, an event's tie never wins. Each change of
 * status that an event tells is a row of history; several events of one change share it.
 */
export async function applyConnections(tx: Executor, eventIds: readonly string[]): Promise<void> {
  const ids = array(eventIds, 'text');
  await tx.execute(sql`
    with told as materialized (
      select * from metersync.journal
      where id = any(${ids}) and kind = 'connection'
    ), changed as (
      insert into utility.connection_status_changes as s (connection_id, old_status, status, at, event_id)
      select distinct on (connection_id, at, status) connection_id, old_status, status, at, event_id
      from (
        select record_id::uuid as connection_id, payload #>> '{old,status}' as old_status,
          payload ->> 'status' as status, occurred_at as at, id as event_id
        from told
        where payload ->> 'status' is not null
          and (type = 'connection.created.v2' or payload #>> '{old,status}' is not null)
      ) change
      order by connection_id, at, status, event_id
      on conflict (connection_id, at, status) do update set
        old_status = coalesce(s.old_status, excluded.old_status), event_id = excluded.event_id
      where excluded.event_id < s.event_id
    )
    insert into utility.connections as c
      (id, company_id, external_id, datasource, status, url, created, updated)
    select distinct on (record_id) record_id::uuid, company_id, payload ->> 'externalId',
      payload #>> '{datasource,name}', payload ->> 'status', payload ->> 'url',
      metersync.read_time(payload ->> 'created'), occurred_at
    from told
    order by record_id, occurred_at desc, payload ->> 'status' desc nulls last, payload desc
    on conflict (id) do update set
      company_id = excluded.company_id, external_id = excluded.external_id, datasource = excluded.datasource,
      status = excluded.status, url = excluded.url, created = excluded.created, updated = excluded.updated,
      deleted_at = case when excluded.updated > c.updated then null else c.deleted_at end,
      deleted_reason = case when excluded.updated > c.updated then null else c.deleted_reason end
    where c.updated is null or excluded.updated > c.updated
      or (excluded.updated = c.updated and c.raw_updated is distinct from c.updated
        and (excluded.status, excluded.url, excluded.external_id, excluded.datasource)
          > (c.status, c.url, c.external_id, c.datasource))`);
}

/**
 * The sites that a connection serves, which its record may not tell (service-facts 2): then the newest event that tells
 * them is believed, also when the record was read before the event came. The connections' rows are locked by now, so
 * that of two groups the later one sees the other's events.
 */
export async function applyConnectionSites(tx: Executor, eventIds: readonly string[]): Promise<void> {
  const tells = (json: SQL): SQL => sql`jsonb_typeof(${json} -> 'sitesRelations') = 'array'`;
  await tx.execute(sql`
    with incoming as (
      select distinct on (record_id) record_id, occurred_at, payload -> 'sitesRelations' as relations
      from metersync.journal
      where id = any(${array(eventIds, 'text')}) and kind = 'connection' and ${tells(sql`payload`)}
      order by record_id, occurred_at desc, payload -> 'sitesRelations' desc
    ), newest as (
      select c.id as connection_id, i.relations
      from incoming i join utility.connections c on c.id = i.record_id::uuid
      where (${tells(sql`c.raw`)} is not true or c.raw_updated < i.occurred_at)
        and not exists (
          select from metersync.journal e
          where e.record_id = i.record_id and e.kind = 'connection' and case
            when e.occurred_at > i.occurred_at then e.payload is null or ${tells(sql`e.payload`)}
            when e.occurred_at = i.occurred_at then e.payload -> 'sitesRelations' > i.relations end)
    ), relation as (
      select connection_id, metersync.id_of(r -> 'site')::uuid as site_id,
        metersync.text_array(r -> 'accountIds') as account_ids,
        metersync.text_array(r -> 'datasourceTypes') as datasource_types
      from newest, jsonb_array_elements(relations) r
      where metersync.id_of(r -> 'site') is not null
    ), gone as (
      delete from utility.connection_sites s using newest n
      where s.connection_id = n.connection_id
        and not exists (select from relation r where r.connection_id = s.connection_id and r.site_id = s.site_id)
    )
    insert into utility.connection_sites as s (connection_id, site_id, account_ids, datasource_types)
    select distinct on (connection_id, site_id) connection_id, site_id, account_ids, datasource_types
    from relation order by connection_id, site_id, account_ids, datasource_types
    on conflict (connection_id, site_id) do update set
      account_ids = excluded.account_ids, datasource_types = excluded.datasource_types
    where (s.account_ids, s.datasource_types) is distinct from (excluded.account_ids, excluded.datasource_types)`);
}
