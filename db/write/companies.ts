import { sql } from 'drizzle-orm';
import { decoded, inOrder } from './decoded.ts';
import { countWritten, items, laterRead, setColumns, type UpsertPage } from './page.ts';

const columns = ['external_id', 'public_id', 'name'] as const;
const siteColumns = ['company_id', 'name'] as const;

/** Companies. */
export const upsertCompanies: UpsertPage = (tx, page) =>
  countWritten(
    tx,
    sql`with ${items(page)}
    insert into utility.companies as c (id, ${sql.raw(columns.join(', '))}, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id, ${inOrder(columns, decoded.companies(page, sql`known`))}, r, ${page.apiVersion}, ${page.readAt}::timestamptz
    from item left join lateral (
      select id, public_id from utility.companies where id = (r ->> 'id')::uuid offset 0
    ) known on true
    ${page.knownOnly ? sql`where known.id is not null` : sql``}
    order by id, place desc
    on conflict (id) do update set ${setColumns(columns)}
    where ${laterRead('c', columns)}
    returning (xmax = 0) as inserted`,
  );

/** The sites that company records embed (service-facts 2). Those of a record without an id, which is refused, are nobody's. */
export const upsertCompanySites: UpsertPage = (tx, page) =>
  countWritten(
    tx,
    sql`with ${items(page)}, site as (
      select (c.r ->> 'id')::uuid as owner, s.r, c.place
      from item c, jsonb_array_elements(metersync.elements(c.r -> 'sites')) as s (r)
      where c.r ->> 'id' is not null
        ${page.knownOnly ? sql`and exists (select from utility.companies known where known.id = (c.r ->> 'id')::uuid offset 0)` : sql``}
    )
    insert into utility.sites as s (id, ${sql.raw(siteColumns.join(', '))}, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id, ${inOrder(siteColumns, decoded.sites(page, sql`s`))}, r,
      ${page.apiVersion}, ${page.readAt}::timestamptz
    from site order by id, place desc
    on conflict (id) do update set ${setColumns(siteColumns)}
    where ${laterRead('s', siteColumns)}
    returning (xmax = 0) as inserted`,
  );
