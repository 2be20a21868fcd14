import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import type { WrittenRows } from '../records/page.ts';
import { upsertEvents } from '../records/upsert.ts';
import { resources } from '../resources.ts';
import { documents } from '../schema/utility.ts';
import { eventItems, writeEvents } from './items.ts';

/**
 * Applies events to documents: header columns of those created or updated, and tombstones with the
 * state at deletion (seed 2.5).
 */
export async function applyDocuments(
  tx: Executor,
  eventIds: readonly string[],
): Promise<WrittenRows> {
  const events = eventItems('document', eventIds);
  return await writeEvents(tx, upsertEvents(resources.documents, events));
}

/** Sets the site of documents whose record has none and was read before the event came. */
export async function applyDocumentSites(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await hot(tx, 'applyDocumentSites').execute(sql`
    with ${eventItems('document', eventIds)}, named as (
      select distinct on (record_id)
        record_id::uuid as id,
        occurred_at,
        metersync.uuid_of(metersync.id_of(r -> 'site')) as site_id
      from item
      where deleted_at is null
        and metersync.uuid_of(metersync.id_of(r -> 'site')) is not null
      order by record_id, occurred_at desc, site_id desc
    )
    update ${documents} d set site_id = named.site_id
    from named
    where d.id = named.id
      and d.raw_updated = named.occurred_at
      and d.updated = d.raw_updated
      and metersync.uuid_of(coalesce(
        metersync.id_of(d.raw -> 'site'),
        metersync.id_of(d.raw #> '{usageData,0,site}')
      )) is null
      and d.site_id is distinct from named.site_id`);
}
