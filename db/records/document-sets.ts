import { type Database, withTransaction } from '../connection/connect.ts';
import { warehouseFailure } from '../connection/failures.ts';
import { retireUsage } from '../hot/retire-usage.ts';
import type { RecordPage } from './page.ts';
import { holdDocuments } from './usage-data.ts';
import { writePage } from './write-page.ts';

/** Records to write to a table, with the id of each. */
export interface RecordSet {
  readonly page: RecordPage;
  readonly ids: readonly (string | null)[];
}

/** Documents and their usage, from their own endpoints. */
export interface DocumentSets {
  readonly documentIds: readonly string[];
  /** Documents whose usage is incomplete. */
  readonly partialIds?: readonly string[] | undefined;
  /** Absent when the documents themselves are written already. */
  readonly documents?: RecordSet | undefined;
  /** Absent when they have no usage. */
  readonly usage?: RecordSet | undefined;
  /** When the first of the reads began. */
  readonly readAt: string;
}

/**
 * Writes documents and their usage in one transaction, so that no reader sees a bill without its usage. Rows
 * of complete documents that are no longer listed are tombstoned. Rows that Postgres refuses are stored
 * separately and do not affect others.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writeDocumentSets(db: Database, sets: DocumentSets): Promise<void> {
  const { documentIds, partialIds = [], documents, usage, readAt } = sets;
  const completeIds = documentIds.filter((id) => !partialIds.includes(id));
  try {
    await withTransaction(db, async (tx) => {
      await holdDocuments(tx, documentIds);
      if (documents !== undefined) {
        const page: RecordPage = { ...documents.page, usage: 'none', confirms: true };
        await writePage(tx, 'documents', page, documents.ids);
      }
      if (usage !== undefined) await writePage(tx, 'usageData', usage.page, usage.ids);
      const seen = (usage?.ids ?? []).filter((id) => id !== null);
      await retireUsage(tx, completeIds, seen, readAt);
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}
