import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { requeueMissing } from '../queue/queue.ts';
import { connectionSites, connections } from '../schema/utility.ts';
import { items, type RecordPage } from './page.ts';

/**
 * Writes the sites that the connections of a page list (service.md 2.4), if their rows now hold the
 * records of the page. Also makes missing events pending again if the `changed` connections now
 * have the states that the events named. The page's rows are locked by now.
 */
export async function writeConnectionSites(
  tx: Executor,
  page: RecordPage,
  changed: readonly string[],
): Promise<void> {
  const listing = sql`${items(page)}, ${requeueMissing('connections', changed)}, listing as (
      select distinct on (c.id) c.id as connection_id, item.r -> 'sitesRelations' as relations
      from item
        join ${connections} c on c.id = (item.r ->> 'id')::uuid and c.raw = item.r
      where ${listsSites(sql`item.r`)}
        and c.raw_updated is not distinct from c.updated
    )`;
  await serveSites(tx, 'writeConnectionSites', listing);
}

/** Whether the record of a connection, or an event about it, lists its sites: it need not. */
export const listsSites = (record: SQL): SQL =>
  sql`jsonb_typeof(${record} -> 'sitesRelations') = 'array'`;

/** Stores the sites of connections in the last of some steps, `listing (connection_id, relations)`. */
export async function serveSites(tx: Executor, name: string, listing: SQL): Promise<void> {
  await prepared(tx, name).execute(sql`
    with ${listing}, ${relatedSites}, gone as (
      delete from ${connectionSites} s
      using listing l
      where s.connection_id = l.connection_id
        and not exists (
          select from relation r
          where r.connection_id = s.connection_id and r.site_id = s.site_id
        )
    )
    insert into ${connectionSites} as s (connection_id, site_id, account_ids, datasource_types)
    select connection_id, site_id, account_ids, datasource_types
    from relation
    order by connection_id, site_id
    on conflict (connection_id, site_id) do update set
      account_ids = excluded.account_ids,
      datasource_types = excluded.datasource_types
    where (s.account_ids, s.datasource_types)
      is distinct from (excluded.account_ids, excluded.datasource_types)`);
}

/** A step `relation`: sites of connections in a step `listing (connection_id, relations)`. */
export const relatedSites = sql`relation as (
      select distinct on (connection_id, site_id)
        connection_id,
        metersync.uuid_of(metersync.id_of(x -> 'site')) as site_id,
        metersync.text_array(x -> 'accountIds') as account_ids,
        metersync.text_array(x -> 'datasourceTypes') as datasource_types
      from listing
        cross join lateral jsonb_array_elements(relations) x
      where metersync.uuid_of(metersync.id_of(x -> 'site')) is not null
      order by connection_id, site_id, account_ids, datasource_types
    )`;
