import type { Executor } from '../connection/connect.ts';
import { unlistRecords as unlist } from '../hot/unlist-records.ts';
import type { RecordResource } from '../resources.ts';
import { moveUsage } from './usage-data.ts';

/**
 * Removes notes of records of other owners that a company no longer lists. Records that it owned only by
 * listing them go to the next company that lists them, documents with their usage.
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
