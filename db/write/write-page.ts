import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Database, Executor, Transaction } from '../connect.ts';
import { isRefusal, sqlMessage, warehouseFailure } from '../failures.ts';
import { halving } from '../halving.ts';
import { itemTexts, pageOfTexts } from './item-texts.ts';
import type { RecordPage, UpsertPage, WrittenRows } from './page.ts';

export interface PageWritten extends WrittenRows {
  readonly rejected: number;
}

/**
 * Writes a page in one transaction, or as part of the given one. A record that Postgres refuses goes to
 * `metersync.rejected_records` with its text, after the page was split to find it; its neighbours are written. `ids`
 * are the ids of the page's items, in order, null where a record has none.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writePage(
  db: Database | Transaction,
  resource: string,
  upsert: UpsertPage,
  page: RecordPage,
  ids: readonly (string | null)[],
): Promise<PageWritten> {
  const write = async (whole: RecordPage): Promise<PageWritten> => ({
    ...(await db.transaction((tx) => upsert(tx, whole))),
    rejected: 0,
  });
  const writeParts = async (): Promise<PageWritten> => {
    const records = itemTexts(page).map((text, at) => ({ id: ids[at] ?? null, text }));
    const parts = await halving(
      records,
      (some) =>
        write(
          pageOfTexts(
            page,
            some.map(({ text }) => text),
          ),
        ),
      async (only, error) => {
        const { companyId } = page;
        await rejectRecord(db, { resource, companyId, ...only, error: sqlMessage(error) });
        return { ...nothingWritten, rejected: 1 };
      },
    );
    return parts.reduce(sum);
  };
  try {
    return await write(page).catch((error: unknown) => {
      if (!isRefusal(error)) throw error;
      return writeParts();
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}

interface SomeRecord {
  readonly id: string | null;
  readonly text: string;
}

export const nothingWritten: PageWritten = { inserted: 0, changed: 0, rejected: 0 };

export function sum(a: PageWritten, b: PageWritten): PageWritten {
  return {
    inserted: a.inserted + b.inserted,
    changed: a.changed + b.changed,
    rejected: a.rejected + b.rejected,
  };
}

export interface RejectedRecord extends SomeRecord {
  readonly resource: string;
  /** Company in whose listing it stands. */
  readonly companyId: string | null;
  readonly error: string;
}

/** Keeps a record, as the service sent it, with the reason why it is in no table. */
export async function rejectRecord(db: Executor, rejected: RejectedRecord): Promise<void> {
  const { resource, companyId, id, text, error } = rejected;
  const printable = id?.replaceAll('\0', '\\0').toWellFormed().slice(0, 200);
  const recordId = printable ?? createHash('sha256').update(text).digest('hex');
  await db.execute(sql`
    insert into metersync.rejected_records as x (resource, record_id, company_id, error, record)
    values (${resource}, ${recordId}, ${companyId}::uuid, ${error}, ${text})
    on conflict (resource, record_id) do update set
      error = excluded.error, record = excluded.record, rejected_at = excluded.rejected_at`);
}
