import type { Database } from '../connect.ts';
import { warehouseFailure } from '../failures.ts';
import { upsertDocuments } from './documents.ts';
import type { RecordPage } from './page.ts';
import { holdDocuments, retireUsage, upsertUsageData } from './usage-data.ts';
import { writePage } from './write-page.ts';

/** Records on their way into a table, with the id of each. */
export interface RecordsRead {
  readonly page: RecordPage;
  readonly ids: readonly (string | null)[];
}

/** Documents and their usage, as their own endpoints showed them. */
export interface DocumentSets {
  readonly documentIds: readonly string[];
  /** Those of whose usage not all was shown. */
  readonly partialIds?: readonly string[] | undefined;
  /** Absent where the documents themselves are written already. */
  readonly documents?: RecordsRead | undefined;
  /** Absent where they have none. */
  readonly usage?: RecordsRead | undefined;
  /** When the first of the reads began. */
  readonly readAt: string;
}

/**
 * Writes documents and their usage in one transaction: a bill and the usage that it tells are never
 * seen apart. Rows that are no longer shown go, where all are shown; those that Postgres refuses
 * are kept apart and cost their neighbours nothing.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writeDocumentSets(db: Database, sets: DocumentSets): Promise<void> {
  const { documentIds, partialIds = [], documents, usage, readAt } = sets;
  const wholeIds = documentIds.filter((id) => !partialIds.includes(id));
  try {
    await db.transaction(async (tx) => {
      await holdDocuments(tx, documentIds);
      if (documents !== undefined) {
        const page: RecordPage = { ...documents.page, usage: 'none', confirms: true };
        await writePage(tx, 'documents', upsertDocuments, page, documents.ids);
      }
      if (usage !== undefined)
        await writePage(tx, 'usageData', upsertUsageData, usage.page, usage.ids);
      const seen = (usage?.ids ?? []).filter((id) => id !== null);
      await retireUsage(tx, wholeIds, seen, readAt);
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}
