import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/**
 * Companies and sites that events name. An event gives a header only: the API's record is the truth, so a known
 * row keeps its values (but for `public_id`, which events alone tell). Returns the companies first seen here.
 */
export async function applyCompanies(tx: Executor, eventIds: readonly string[]): Promise<string[]> {
  const result = await tx.execute<{ id: string; inserted: boolean }>(sql`
    insert into utility.companies as c (id, external_id, public_id, name)
    select distinct on (company_id) company_id, company ->> 'externalId', company ->> 'publicId', company ->> 'name'
    from (
      select company_id, occurred_at, payload -> 'company' as company
      from metersync.events where id = any(${array(eventIds, 'text')}) and company_id is not null
    ) named
    order by company_id, occurred_at desc nulls last, company
    on conflict (id) do update set public_id = excluded.public_id
      where c.public_id is null and excluded.public_id is not null
    returning id, (xmax = 0) as inserted`);
  return result.rows.filter((row) => row.inserted).map((row) => row.id);
}

export async function applySites(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await tx.execute(sql`
    insert into utility.sites (id, company_id, name)
    select distinct on (id) (site ->> 'id')::uuid as id, company_id, site ->> 'name'
    from (
      select company_id, occurred_at, payload -> 'site' as site
      from metersync.events where id = any(${array(eventIds, 'text')}) and kind = 'document'
      union all
      select company_id, occurred_at, relation -> 'site'
      from metersync.events, jsonb_array_elements(metersync.elements(payload -> 'sitesRelations')) relation
      where id = any(${array(eventIds, 'text')}) and kind = 'connection'
    ) named
    where site ->> 'id' is not null
    order by id, occurred_at desc nulls last, site
    on conflict (id) do nothing`);
}
