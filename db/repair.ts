import { sql } from 'drizzle-orm';
import { array, uuid } from './arrays.ts';
import type { Executor } from './connect.ts';
import { dated, type RecordResource, tableOf } from './resources.ts';

const withRawUpdated: readonly RecordResource[] = ['connections', 'documents'];

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
  const forgotten = [
    'synced_at = null',
    'deleted_at = null',
    'deleted_reason = null',
    ...(dated.includes(resource) ? ['updated = null'] : []),
    ...(withRawUpdated.includes(resource) ? ['raw_updated = null'] : []),
  ];
  const known =
    resource === 'meters'
      ? array(ids, 'text')
      : array(
          ids.filter((id) => uuid.test(id)),
          'uuid',
        );
  await db.execute(sql`
    update ${tableOf(resource)} t set ${sql.raw(forgotten.join(', '))}
    where t.id = any(${known})
      and (t.synced_at is null or t.synced_at < ${readAt}::timestamptz)
      and not exists (select from metersync.journal e
        where e.record_id = t.id::text and e.recorded_at >= ${readAt}::timestamptz offset 0)`);
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
