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

/** Documents and their usage, each read from its own endpoint. */
export interface DocumentSets {
  readonly documentIds: readonly string[];
  /** Documents whose usage is incomplete. */
  readonly partialIds?: readonly string[] | undefined;
  /** Absent if the documents themselves have already been written. */
  readonly documents?: RecordSet | undefined;
  /** Absent if the documents have no usage. */
  readonly usage?: RecordSet | undefined;
  /** When the first of the reads began. */
  readonly readAt: string;
}

/**
 * Writes documents with their usage, so that no reader sees a bill without usage. Usage rows no
 * longer listed are tombstoned if usage was read completely. Refused records are stored separately.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writeDocumentSets(db: Database, sets: DocumentSets): Promise<void> {
  const { documentIds, partialIds = [], documents, usage, readAt } = sets;
  const completeIds = documentIds.filter((id) => !partialIds.includes(id));
  try {
    await withTransaction(db, async (tx) => {
      await holdDocuments(tx, documentIds);
      if (documents !== undefined) {
        const page: RecordPage = { ...documents.page, confirms: true };
        await writePage(tx, 'documents', page, documents.ids);
      }
      if (usage !== undefined) await writePage(tx, 'usageData', usage.page, usage.ids);
      const seen = (usage?.ids ?? []).filter((id) => id !== null);
      const { companyId = null } = (usage ?? documents)?.page ?? {};
      await retireUsage(tx, completeIds, seen, readAt, companyId);
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}
