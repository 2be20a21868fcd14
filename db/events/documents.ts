import { sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';
import { upsertEvents } from '../records/upsert.ts';
import { resources } from '../resources.ts';
import { documents } from '../schema/utility.ts';
import { toldByEvents } from './told.ts';

/**
 * What events tell of documents: the header columns of those that were created or updated, and
 * tombstones with the state at deletion (seed 2.5).
 */
export async function applyDocuments(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await tx.execute(
    sql`with ${upsertEvents(resources.documents, toldByEvents('document', eventIds))}`,
  );
}

/**
 * The site of a document whose record was read before its event came, and tells none: the event's.
 */
export async function applyDocumentSites(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await tx.execute(sql`
    with ${toldByEvents('document', eventIds)}, told as (
      select distinct on (record_id)
        record_id::uuid as id,
        occurred_at,
        metersync.id_of(r -> 'site')::uuid as site_id
      from item
      where deleted_at is null
        and metersync.id_of(r -> 'site') is not null
      order by record_id, occurred_at desc, site_id desc
    )
    update ${documents} d set site_id = told.site_id
    from told
    where d.id = told.id
      and d.raw_updated = told.occurred_at
      and d.updated = d.raw_updated
      and metersync.id_of(d.raw -> 'site') is null
      and metersync.id_of(d.raw #> '{usageData,0,site}') is null
      and d.site_id is distinct from told.site_id`);
}
