import { sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { row } from '../deletes/tombstone.ts';
import { idOf, type RecordResource, resources, tableOf } from '../resources.ts';
import { companyChanges, journal } from '../schema/metersync.ts';

/**
 * Clears versions and tombstones of the given rows, so that the next write is taken. Rows that a
 * read or an event touched since `readAt` are left alone: they are newer than the page that differs
 * from them.
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
  const event = alias(journal, 'event');
  await db.execute(sql`
    update ${tableOf(resource)} ${row}
    set ${sql.join(forgotten, sql`, `)}
    where ${row.id} = any(array(
        select ${idOf(resource, sql`id`)}
        from unnest(${array(ids, 'text')}) as differing (id)
      ))
      and (${row.syncedAt} is null or ${row.syncedAt} < ${readAt}::timestamptz)
      and not exists (
        select
        from ${journal} ${event}
        where ${event.recordId} = ${row.id}::text
          and ${event.recordedAt} >= ${readAt}::timestamptz
        offset 0
      )`);
}

/** Notes that a company changes: of connections no trigger does. */
export async function noteRepair(db: Executor, companyId: string): Promise<void> {
  await db.insert(companyChanges).values({ companyId });
}
