import { sql } from 'drizzle-orm';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { type RecordResource, resources } from '../resources.ts';
import { items, type RecordPage } from './page.ts';
import { idOfRecord } from './upsert.ts';

/**
 * Counts the records of a page whose rows have a newer state that a read found some time before this one. The
 * service has gone back, perhaps because it was restored from a backup. A state from an event does not count,
 * because the service may not show it yet. Neither does a state that was just read, because a listing may lag
 * behind.
 */
export async function countOlder(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
): Promise<number> {
  const { table, columns } = resources[resource];
  const updated = columns.find(({ column }) => column === table.updated)?.of;
  if (updated === undefined) return 0;
  const wasRead =
    table.rawUpdated === undefined ? sql`` : sql`and ${row.rawUpdated} = ${row.updated}`;
  const result = await hot(db, 'countOlder').execute<{ older: number }>(sql`
    with ${items(page)}, listed as (
      select distinct on (id) ${idOfRecord(resources[resource])} as id, ${updated} as updated
      from item
      order by id, updated desc nulls last
    )
    select count(*)::int as older
    from listed
      cross join lateral (
        select
        from ${table} ${row}
        where ${row.id} = listed.id
          and ${row.updated} > listed.updated
          ${wasRead}
          and ${row.deletedAt} is null
          and ${row.syncedAt} < ${page.readAt}::timestamptz
            - make_interval(secs => ${attemptPolicy.eventOnItsWaySeconds})
        offset 0
      ) newer`);
  return result.rows[0]?.older ?? 0;
}
