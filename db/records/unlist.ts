import type { Executor } from '../connection/connect.ts';
import { unlistRecords as unlist } from '../hot/unlist-records.ts';
import type { RecordResource } from '../resources.ts';
import { moveUsage } from './usage-data.ts';

/**
 * Deletes the notes that a company lists records of other owners if it no longer lists them.
 * Records that it owned only because it listed them go to the next company that lists them. The
 * usage of documents goes with them.
 */
export async function unlistRecords(
  tx: Executor,
  resource: RecordResource,
  companyId: string,
  listedIds: readonly string[],
): Promise<void> {
  const inherited = await unlist(tx, resource, companyId, listedIds);
  if (resource === 'documents') await moveUsage(tx, inherited);
}
