import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { deletingTypes } from '../../contract/event.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import type { WrittenRows } from '../records/page.ts';
import { journal } from '../schema/metersync.ts';

/** Whether events of a type delete their record. */
export const isDeletion = (type: SQLWrapper): SQL =>
  sql`${type} = any(${array(deletingTypes, 'text')})`;

/** Writes events as rows. @param steps of a statement that ends with the insert of these rows */
export async function writeEvents(tx: Executor, steps: SQL): Promise<WrittenRows> {
  const { rows } = await hot(tx, 'writeEvents').execute<{ inserted: boolean }>(sql`
    with ${steps}
    returning xmax = 0 as inserted`);
  const inserted = rows.filter((row) => row.inserted).length;
  return { inserted, changed: rows.length - inserted };
}

/**
 * Journal events as a step `item (event_id, record_id, owner, r, type, occurred_at, deleted_at)` of
 * a statement. `deleted_at` is when the event that deletes the record came, no later than by the
 * warehouse's clock, which dates reads: one that begins afterwards revives what it finds.
 */
export const eventItems = (
  kind: 'connection' | 'document',
  eventIds: readonly string[],
): SQL => sql`
  item as materialized (
    select
      ${journal.id} as event_id,
      ${journal.recordId},
      ${journal.companyId} as owner,
      ${journal.payload} as r,
      ${journal.type},
      ${journal.occurredAt},
      case
        when ${isDeletion(journal.type)}
        then least(${journal.receivedAt}, ${journal.recordedAt})
      end as deleted_at
    from ${journal}
    where ${journal.id} = any(${array(eventIds, 'text')})
      and ${journal.kind} = ${kind}
  )`;
