import { sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import type { Seen } from '../deletes/listing.ts';
import { row } from '../deletes/tombstone.ts';
import { isAhead, lockedFence, type Walk } from '../records/fence.ts';
import { alsoListing, saysOwner } from '../records/owner.ts';
import { type RecordResource, tableOf } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';

/**
 * Deletes the notes that a company lists records of other owners if it no longer lists them.
 * Records that it owned only because it listed them go to the next company that lists them. If a
 * later walk over the listing was proved, it does nothing. It runs for each listing of a company
 * that was read completely.
 */
export async function unlistRecords(
  tx: Executor,
  listing: { readonly resource: RecordResource; readonly companyId: string },
  { ids, beganAt, of = listing }: Seen,
): Promise<void> {
  const { resource, companyId } = listing;
  const walk: Walk = { ...of, began: beganAt };
  const listed = array(printedUuids(ids), 'text');
  await hot(tx, 'unlistRecords').execute(sql`
    with ${lockedFence(walk)}, unlisted as (
      delete from ${alsoListed} other
      where other.company_id = ${companyId}::uuid
        and other.resource = ${resource}
        and not (other.record_id = any(${listed}))
        and ${isAhead(walk, 'absences')}
    ), inherited as (
      update ${tableOf(resource)} ${row}
      set company_id = (
        select other.company_id${alsoListing(resource)}
        order by other.company_id
        limit 1
      )
      where ${row.companyId} = ${companyId}::uuid
        and ${row.deletedAt} is null
        and ${isAhead(walk, 'absences')}
        -- Skips the search when no record of the kind is also listed.
        and (
          select true
          from ${alsoListed}
          where ${alsoListed.resource} = ${resource}
          order by ${alsoListed.recordId}
          limit 1
        )
        and not (${row.id}::text = any(${listed}))
        and not ${saysOwner(resource, sql`${row}`)}
        and exists (select${alsoListing(resource)})
    )
    select`);
}
