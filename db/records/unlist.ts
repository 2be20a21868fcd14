import { type Database, withTransaction } from '../connection/connect.ts';
import type { Seen } from '../deletes/listing.ts';
import { unlistRecords as unlist } from '../hot/unlist-records.ts';
import type { RecordResource } from '../resources.ts';
import { isBehind } from './fence.ts';

/** Runs the statement `unlistRecords`, unless a later walk over the listing was proved. */
export async function unlistRecords(
  db: Database,
  listing: { readonly resource: RecordResource; readonly companyId: string },
  { ids, beganAt, of = listing }: Seen,
): Promise<void> {
  const { resource, companyId } = listing;
  await withTransaction(db, async (tx) => {
    if (await isBehind(tx, { ...of, began: beganAt }, 'absences')) return;
    await unlist(tx, resource, companyId, ids);
  });
}
