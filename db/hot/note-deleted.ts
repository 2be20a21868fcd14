import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { isDeletion } from '../events/items.ts';
import { settledAs, unlessRecordedAnew } from '../events/outcomes.ts';
import { journal } from '../schema/metersync.ts';
import { documents } from '../schema/utility.ts';

/**
 * Settles pending and missing events of documents that events deleted, as superseded, except
 * deletions: a pending deletion has taken effect, and waits until the service no longer shows the
 * document. It runs for each group of events with deletions. Measured: 1.3 ms and 68 blocks for a
 * group with one deletion.
 */
export async function noteDeleted(tx: Executor, deleted: readonly string[]): Promise<void> {
  await hot(tx, 'noteDeleted').execute(sql`
    with gone as materialized (
      select d.id::text as record_id, d.updated
      from unnest(${array([...deleted].sort(), 'uuid')}) as named (id)
        cross join lateral (
          select id, updated
          from ${documents}
          where id = named.id and deleted_reason = 'event'
          offset 0
        ) d
    ), covered as materialized (
      select e.id
      from gone g
        cross join lateral (
          select id
          from ${journal}
          where record_id = g.record_id
            and kind = 'document'
            and outcome in ('pending', 'missing')
            and not ${isDeletion(journal.type)}
            and occurred_at <= g.updated
          offset 0
          ${unlessRecordedAnew}
        ) e
    )
    update ${journal} set
      ${settledAs(sql`'superseded'`)}
    where id = any(array(select id from covered))`);
}
