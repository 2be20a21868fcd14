import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { type RecordedEvent, recorded } from '../events/items.ts';
import { settledAs } from '../events/outcomes.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';

/**
 * Settles, of the pending events of a group, those that are older than the state last read or covered
 * by the recent tombstone of an event, as superseded. A read may undo an older one. For a document that was read, its usage must have been
 * read, too: a page read for another document contains none of it. This statement comes after all
 * writes to records, whose rows are locked by now, so that the later of two groups sees what the
 * earlier group wrote. It runs for each group of events. Measured: 0.11 ms and 13 blocks for a lone
 * event; 0.58 ms and 132 blocks for a group of eight.
 */
export async function supersedeOlder(
  tx: Executor,
  events: readonly RecordedEvent[],
): Promise<void> {
  await hot(tx, 'supersedeOlder').execute(sql`
    with reported as materialized (
      select
        e.event_id,
        case e.kind
          when 'document' then (
            select e.occurred_at < d.raw_updated and d.usage_read_at >= d.synced_at
              or not e.deletes
                and d.deleted_reason = 'event'
                and e.occurred_at <= d.updated
                and d.hint_came > clock_timestamp() - metersync.api_lag()
            from ${documents} d
            where d.id = e.record_id::uuid
          )
          when 'connection' then (
            select e.occurred_at < c.raw_updated
            from ${connections} c
            where c.id = e.record_id::uuid
          )
        end is true as superseded
      from (select * from ${recorded(events)}) e
    )
    update ${journal} set
      ${settledAs(sql`'superseded'`)}
    where id = any(array(select event_id from reported where superseded))`);
}
