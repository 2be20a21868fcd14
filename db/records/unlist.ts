import type { Executor } from '../connection/connect.ts';
import { unlistRecords as unlist } from '../hot/unlist-records.ts';
import type { RecordResource } from '../resources.ts';
import { moveUsage } from './usage-data.ts';

/** Runs the statement `unlistRecords`, and moves the usage of documents that got another owner. */
export async function unlistRecords(
  tx: Executor,
  resource: RecordResource,
  companyId: string,
  listedIds: readonly string[],
): Promise<void> {
  const inherited = await unlist(tx, resource, companyId, listedIds);
  if (resource === 'documents') await moveUsage(tx, inherited);
}
