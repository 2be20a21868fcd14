import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import type { WrittenRows } from '../records/page.ts';
import { upsertEvents } from '../records/upsert.ts';
import { resources } from '../resources.ts';
import { documents } from '../schema/utility.ts';
import { eventItems, payloadOf, type RecordedEvent, recorded, writeEvents } from './items.ts';

/**
 * Applies events to documents: header columns of created or updated documents, and tombstones with the state
 * at deletion (service.md 2.5).
 */
export async function applyDocuments(
  tx: Executor,
  recordedEvents: readonly RecordedEvent[],
): Promise<WrittenRows> {
  const events = eventItems(recordedEvents);
  return await writeEvents(tx, upsertEvents(resources.documents, events));
}

/** Sets the site of documents whose record names none and was read before the event arrived. */
export async function applyDocumentSites(
  tx: Executor,
  recordedEvents: readonly RecordedEvent[],
): Promise<void> {
  await hot(tx, 'applyDocumentSites').execute(sql`
    with named as materialized (
      select distinct on (read.id) read.id, identified.site_id
      from ${recorded(recordedEvents)}
        cross join lateral (
          -- Few, so that the payloads of the others are not read.
          select d.id, d.raw
          from ${documents} d
          where d.id = t.record_id::uuid
            and d.raw_updated = t.occurred_at
            and d.updated = d.raw_updated
          offset 0
        ) read
        cross join lateral ${payloadOf(sql`t.event_id`)} said
        cross join lateral (
          select metersync.uuid_of(metersync.id_of(said.payload -> 'site')) as site_id
        ) identified
      where not t.deletes
        and identified.site_id is not null
        and metersync.uuid_of(coalesce(
          metersync.id_of(read.raw -> 'site'),
          metersync.id_of(read.raw #> '{usageData,0,site}')
        )) is null
      order by read.id, identified.site_id desc
    )
    update ${documents} d set site_id = named.site_id
    from named
    where d.id = any(array(select id from named))
      and d.id = named.id
      and d.site_id is distinct from named.site_id`);
}
