import { type SQL, sql } from 'drizzle-orm';
import { connectionSites } from '../schema/utility.ts';

/** Whether a connection's record, or an event of it, lists its sites, which both may leave out. */
export const listsSites = (record: SQL): SQL =>
  sql`jsonb_typeof(${record} -> 'sitesRelations') = 'array'`;

/** The sites of connections `listing (connection_id, relations)`, each one once. */
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

/** A step that removes sites of connections `listing` that `relation` lacks. */
export const goneSites = sql`gone as (
      delete from ${connectionSites} s
      using listing l
      where s.connection_id = l.connection_id
        and not exists (
          select from relation r
          where r.connection_id = s.connection_id and r.site_id = s.site_id
        )
    )`;

/** Makes connections serve the sites of `relation`: a statement, or a step of one. */
export const serveSites = sql`
    insert into ${connectionSites} as s (connection_id, site_id, account_ids, datasource_types)
    select connection_id, site_id, account_ids, datasource_types
    from relation
    order by connection_id, site_id
    on conflict (connection_id, site_id) do update set
      account_ids = excluded.account_ids,
      datasource_types = excluded.datasource_types
    where (s.account_ids, s.datasource_types)
      is distinct from (excluded.account_ids, excluded.datasource_types)`;
