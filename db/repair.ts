import { sql } from 'drizzle-orm';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';
import { idOf, type RecordResource, resources, tableOf } from './resources.ts';
import { journal } from './schema/metersync.ts';

/**
 * Forgets how new the given rows are and that they are gone, so that whatever is written next is taken. Rows that a
 * read or an event touched since `readAt` are left alone: they are newer than the page that differs from them.
 */
export async function forgetVersions(
  db: Executor,
  resource: RecordResource,
  ids: readonly string[],
  readAt: string,
): Promise<void> {
  const { syncedAt, deletedAt, deletedReason, updated, rawUpdated } = resources[resource].table;
  const forgotten = [syncedAt, deletedAt, deletedReason, updated, rawUpdated].flatMap((column) =>
    column === undefined ? [] : sql`${sql.identifier(column.name)} = null`,
  );
  await db.execute(sql`
    update ${tableOf(resource)} t set ${sql.join(forgotten, sql`, `)}
    where t.id = any(array(
        select ${idOf(resource, sql`id`)} from unnest(${array(ids, 'text')}) as differing (id)))
      and (t.synced_at is null or t.synced_at < ${readAt}::timestamptz)
      and not exists (
        select from ${journal} e
        where e.record_id = t.id::text and e.recorded_at >= ${readAt}::timestamptz
        offset 0
      )`);
}

/** Removes the given readings of a meter, less those that were read since `readAt`. */
export async function removeReadings(
  db: Executor,
  meterId: string,
  ids: readonly string[],
  readAt: string,
): Promise<number> {
  const result = await db.execute(sql`
    delete from utility.intervals i
    where meter_id = ${meterId} and synced_at < ${readAt}::timestamptz
      and ${meterId} || '@' || start_at || '/' || granularity_seconds || '/' || usage_units = any(${array(ids, 'text')})`);
  return result.rowCount ?? 0;
}
