import { and, count, eq, isNull, sql } from 'drizzle-orm';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { row } from '../deletes/tombstone.ts';
import { type RecordResource, resources, tableOf, updatedOf } from '../resources.ts';
import { isListedBy } from './listers.ts';
import { itemList, type RecordPage } from './page.ts';
import { idOfRecord, isListing } from './upsert.ts';

/**
 * Counts records of a page whose rows have a newer state that was read some time before: the
 * service has gone back to older states, perhaps restored from a backup. States from events, which
 * the service may not show yet, and states just read, as a listing may lag behind, do not count.
 */
export async function countOlder(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
): Promise<number> {
  const { table } = resources[resource];
  if (table.updated === undefined) return 0;
  const listed = db
    .selectDistinctOn([sql`id`], {
      id: idOfRecord(resources[resource]).as('id'),
      updated: updatedOf('r').as('updated'),
    })
    .from(sql`jsonb_array_elements(${itemList(page)}) as item (r)`)
    .orderBy(sql`id`, sql`updated desc nulls last`)
    .as('listed');
  const longAgo = sql`${page.readAt}::timestamptz
    - make_interval(secs => ${attemptPolicy.eventOnItsWaySeconds})`;
  const newer = db
    .select({ id: sql`${row.id}`.as('id') })
    .from(sql`${tableOf(resource)} ${row}`)
    .where(
      and(
        sql`${row.id} = listed.id`,
        sql`${row.updated} > listed.updated`,
        table.rawUpdated && eq(row.rawUpdated, row.updated),
        isNull(row.deletedAt),
        sql`${row.syncedAt} < ${longAgo}`,
        isListing(resources[resource], page) ? isListedBy(sql`${page.companyId}::uuid`) : undefined,
      ),
    )
    .offset(literal(0))
    .as('newer');
  const [found] = await db.select({ older: count() }).from(listed).crossJoinLateral(newer);
  return found?.older ?? 0;
}
