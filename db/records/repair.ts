import { sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { row } from '../deletes/tombstone.ts';
import { idOf, type RecordResource, resources, tableOf } from '../resources.ts';
import { companyChanges, journal } from '../schema/metersync.ts';
import { reviveUsage } from './documents.ts';

/**
 * Clears the versions and tombstones of the given rows, so that the next write is accepted. Usage is restored
 * with its document. Rows that a read or an event touched since `readAt` are not changed, because they are
 * newer than the page that differs from them.
 */
export async function clearVersions(
  db: Executor,
  resource: RecordResource,
  ids: readonly string[],
  readAt: string,
): Promise<void> {
  const { syncedAt, deletedAt, deletedReason, updated, rawUpdated } = resources[resource].table;
  const cleared = [syncedAt, deletedAt, deletedReason, updated, rawUpdated].flatMap((column) =>
    column === undefined ? [] : sql`${sql.identifier(column.name)} = null`,
  );
  const event = alias(journal, 'event');
  const { rows } = await db.execute<{ id: string; tombstoned: string | null }>(sql`
    with cleared as (
      update ${tableOf(resource)} ${row}
      set ${sql.join(cleared, sql`, `)}
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
        )
      returning ${row.id}
    )
    select
      before.id,
      before.deleted_at::text as tombstoned
    from cleared
      cross join lateral (
        select id, deleted_at
        from ${tableOf(resource)}
        where id = cleared.id
        offset 0
      ) before`);
  if (resource === 'documents') await reviveUsage(db, rows);
}

/** Notes that a company changes: of connections no trigger does. */
export async function noteRepair(db: Executor, companyId: string): Promise<void> {
  await db.insert(companyChanges).values({ companyId });
}
