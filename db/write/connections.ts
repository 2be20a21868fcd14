import { sql } from 'drizzle-orm';
import { decoded, inOrder, relatedSites } from './decoded.ts';
import { lookAgain } from './missing.ts';
import { confirmedBy, countWritten, items, newerRead, setColumns, type UpsertPage } from './page.ts';

const columns = [
  'company_id',
  'external_id',
  'datasource',
  'status',
  'url',
  'created',
  'updated',
  'raw_updated',
] as const;

/** Connections, and where a record tells them (seed 2.4) the sites that each one serves. */
export const upsertConnections: UpsertPage = async (tx, page) => {
  const { rows } = await tx.execute<{ id: string; inserted: boolean }>(sql`with ${items(page)}
    insert into utility.connections as c (id, ${sql.raw(columns.join(', '))}, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id, ${inOrder(columns, decoded.connections(page, sql`c`))},
      r, ${page.apiVersion}, ${page.readAt}::timestamptz
    from item order by id, metersync.read_time(r ->> 'updated') desc nulls last, place desc
    on conflict (id) do update set ${setColumns(columns)}
    where ${newerRead('c', columns, undefined, confirmedBy(page, 'connection', 'c'))}
    returning id, (xmax = 0) as inserted`);
  await replaceConnectionSites(tx, page);
  const changed = rows.filter(({ inserted }) => !inserted);
  if (changed.length > 0) await lookAgain(tx, 'connection', changed);
  return { inserted: rows.length - changed.length, changed: changed.length };
};

/** Sites of the connections whose row now holds the page's record; a record that tells no relations leaves them. */
const replaceConnectionSites: UpsertPage = (tx, page) =>
  countWritten(
    tx,
    sql`with ${items(page)}, current as (
      select distinct on (c.id) c.id, item.r -> 'sitesRelations' as relations
      from item join utility.connections c on c.id = (item.r ->> 'id')::uuid and c.raw = r
      where jsonb_typeof(item.r -> 'sitesRelations') = 'array' and c.raw_updated is not distinct from c.updated
    ), relation as (
      select distinct on (1, 2) id as connection_id, ${relatedSites}
      from current, jsonb_array_elements(relations) x
      where metersync.id_of(x -> 'site') is not null
      order by 1, 2, 3, 4
    ), gone as (
      delete from utility.connection_sites s using current c
      where s.connection_id = c.id
        and not exists (select from relation r where r.connection_id = s.connection_id and r.site_id = s.site_id)
    )
    insert into utility.connection_sites as s (connection_id, site_id, account_ids, datasource_types)
    select connection_id, site_id, account_ids, datasource_types from relation order by 1, 2
    on conflict (connection_id, site_id) do update set
      account_ids = excluded.account_ids, datasource_types = excluded.datasource_types
    where (s.account_ids, s.datasource_types) is distinct from (excluded.account_ids, excluded.datasource_types)
    returning (xmax = 0) as inserted`,
  );
