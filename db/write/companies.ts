import { sql } from 'drizzle-orm';
import { countWritten, items, laterRead, rawOf, setColumns, type UpsertPage } from './page.ts';

const columns = ['external_id', 'public_id', 'name'] as const;

/** Companies. `public_id` is often told by events alone: a record without it leaves what is known. */
export const upsertCompanies: UpsertPage = (tx, page) =>
  countWritten(
    tx,
    sql`with ${items(page)}
    insert into utility.companies as c (id, external_id, public_id, name, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id, r ->> 'externalId',
      coalesce(r ->> 'publicId', known.public_id), r ->> 'name', ${rawOf}, ${page.apiVersion}, ${page.readAt}::timestamptz
    from item left join utility.companies known on known.id = (r ->> 'id')::uuid
    order by id, place desc
    on conflict (id) do update set ${setColumns(columns)}
    where ${laterRead('c', columns)}
    returning (xmax = 0) as inserted`,
  );

/** The sites that company records embed (service-facts 2). */
export const upsertCompanySites: UpsertPage = (tx, page) =>
  countWritten(
    tx,
    sql`with ${items(page)}, site as (
      select (c.r ->> 'id')::uuid as company_id, s.r, c.place
      from item c, jsonb_array_elements(metersync.elements(c.r -> 'sites')) as s (r)
    )
    insert into utility.sites as s (id, company_id, name, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id, company_id, r ->> 'name', ${rawOf},
      ${page.apiVersion}, ${page.readAt}::timestamptz
    from site order by id, place desc
    on conflict (id) do update set ${setColumns(['company_id', 'name'])}
    where ${laterRead('s', ['company_id', 'name'])}
    returning (xmax = 0) as inserted`,
  );
