import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/**
 * Created and updated documents: the header columns. Newer `updated` wins; ties between events are broken by
 * content; a tombstone yields only to a newer state.
 */
export async function applyDocuments(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await tx.execute(sql`
    insert into utility.documents as d (id, company_id, site_id, created, updated)
    select distinct on (record_id) record_id::uuid as id, company_id, metersync.id_of(payload -> 'site')::uuid,
      metersync.read_time(payload ->> 'created'), occurred_at
    from metersync.journal
    where id = any(${array(eventIds, 'text')}) and kind = 'document' and type <> 'document.deleted.v2'
    order by record_id, occurred_at desc, metersync.id_of(payload -> 'site') desc nulls last
    on conflict (id) do update set
      company_id = excluded.company_id, site_id = coalesce(excluded.site_id, d.site_id),
      created = excluded.created, updated = excluded.updated,
      deleted_at = case when excluded.updated > d.updated then null else d.deleted_at end,
      deleted_reason = case when excluded.updated > d.updated then null else d.deleted_reason end
    where d.updated is null or excluded.updated > d.updated
      or (excluded.updated = d.updated and d.raw_updated is distinct from d.updated
        and d.deleted_reason is distinct from 'event' and excluded.site_id > d.site_id)`);
}

/** The site of a document whose record was read before its event came, and tells none: the event's. */
export async function applyDocumentSites(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await tx.execute(sql`
    update utility.documents d set site_id = told.site_id
    from (
      select distinct on (record_id) record_id::uuid as id, occurred_at, metersync.id_of(payload -> 'site')::uuid as site_id
      from metersync.journal
      where id = any(${array(eventIds, 'text')}) and kind = 'document' and type <> 'document.deleted.v2'
        and metersync.id_of(payload -> 'site') is not null
      order by record_id, occurred_at desc, site_id desc
    ) told
    where d.id = told.id and d.raw_updated = told.occurred_at and d.updated = d.raw_updated
      and coalesce(metersync.id_of(d.raw -> 'site'), metersync.id_of(d.raw #> '{usageData,0,site}')) is null
      and d.site_id is distinct from told.site_id`);
}

/**
 * Deleted documents: a tombstone with the state at deletion (seed 2.5), also for a document never seen, so that no
 * late event or page brings it back.
 */
export async function applyDocumentDeletes(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await tx.execute(sql`
    insert into utility.documents as d
      (id, company_id, site_id, created, updated, deleted_at, deleted_reason)
    select distinct on (record_id) record_id::uuid as id, company_id,
      metersync.id_of(payload -> 'site')::uuid, metersync.read_time(payload ->> 'created'),
      occurred_at, received_at, 'event'
    from metersync.journal
    where id = any(${array(eventIds, 'text')}) and type = 'document.deleted.v2'
    order by record_id, occurred_at desc, received_at
    on conflict (id) do update set
      company_id = excluded.company_id, site_id = coalesce(excluded.site_id, d.site_id),
      created = excluded.created, updated = excluded.updated,
      deleted_at = excluded.deleted_at, deleted_reason = 'event'
    where d.updated is null or excluded.updated > d.updated
      or (excluded.updated = d.updated and d.deleted_reason is distinct from 'event')`);
}
