import { sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { alsoListing, saysOwner } from '../records/owner.ts';
import { type RecordResource, tableOf } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';

/**
 * Deletes the notes that a company lists records of other owners if it no longer lists them.
 * Records that it owned only because it listed them go to the next company that lists them. It runs for each listing of a company that was read completely.
 */
export async function unlistRecords(
  tx: Executor,
  resource: RecordResource,
  companyId: string,
  listedIds: readonly string[],
): Promise<void> {
  const listed = array(printedUuids(listedIds), 'text');
  await hot(tx, 'unlistRecords').execute(sql`
    with unlisted as (
      delete from ${alsoListed} other
      where other.company_id = ${companyId}::uuid
        and other.resource = ${resource}
        and not (other.record_id = any(${listed}))
    ), inherited as (
      update ${tableOf(resource)} ${row}
      set company_id = (
        select other.company_id${alsoListing(resource)}
        order by other.company_id
        limit 1
      )
      where ${row.companyId} = ${companyId}::uuid
        and ${row.deletedAt} is null
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
