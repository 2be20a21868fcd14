import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/**
 * Companies and sites that events name. An event gives a header only: the API's record is the truth, so a known
 * row keeps its values (but for `public_id`, which events alone may tell). Rows that are known are looked up rather
 * than conflicted with: a conflict locks them, and every group names the same few companies. Returns the companies
 * first seen here.
 */
export async function applyCompanies(tx: Executor, eventIds: readonly string[]): Promise<string[]> {
  const result = await tx.execute<{ id: string }>(sql`
    with named as materialized (
      select distinct on (company_id) company_id as id, payload -> 'company' as company
      from metersync.events where id = any(${array(eventIds, 'text')}) and company_id is not null
      order by company_id, occurred_at desc nulls last, payload -> 'company'
    ), told as (
      update utility.companies c set public_id = n.company ->> 'publicId'
      from named n where c.id = n.id and c.public_id is null and n.company ->> 'publicId' is not null
    )
    insert into utility.companies (id, external_id, public_id, name)
    select id, company ->> 'externalId', company ->> 'publicId', company ->> 'name' from named
    where not exists (select from utility.companies known where known.id = named.id)
    order by id
    on conflict (id) do nothing
    returning id`);
  return result.rows.map((row) => row.id);
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
      and not exists (select from utility.sites known where known.id = (site ->> 'id')::uuid)
    order by id, occurred_at desc nulls last, site
    on conflict (id) do nothing`);
}

/** Companies that events brought, and that no backfill has begun to read. */
export async function companiesNeverRead(tx: Executor, eventIds: readonly string[]): Promise<string[]> {
  const result = await tx.execute<{ id: string }>(sql`
    select distinct c.id from metersync.events e join utility.companies c on c.id = e.company_id
    where e.id = any(${array(eventIds, 'text')})
      and (c.synced_at is null or c.synced_at > c.first_synced_at)
      and not exists (select from metersync.runs r where r.company_id = c.id)`);
  return result.rows.map((row) => row.id);
}
