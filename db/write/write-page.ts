import type { Database, Transaction } from '../connect.ts';
import { isRefusal, sqlMessage, warehouseFailure } from '../failures.ts';
import { halving } from '../halving.ts';
import { itemTexts, pageOfTexts } from './item-texts.ts';
import type { RecordPage, UpsertPage, WrittenRows } from './page.ts';
import { forgetRejected, rejectRecord } from './rejected-records.ts';

export interface PageWritten extends WrittenRows {
  readonly rejected: number;
}

/**
 * Writes a page in one transaction, or as part of the given one. A record that Postgres refuses goes to
 * `metersync.rejected_records` with its text, after the page was split to find it, until a later read finds it in order;
 * its neighbours are written. `ids` are the ids of the page's items, in order, null where a record has none.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writePage(
  db: Database | Transaction,
  resource: string,
  upsert: UpsertPage,
  page: RecordPage,
  ids: readonly (string | null)[],
): Promise<PageWritten> {
  const write = async (some: RecordPage, idsOfSome: readonly (string | null)[]): Promise<PageWritten> =>
    await db.transaction(async (tx) => {
      const written = await upsert(tx, some);
      await forgetRejected(tx, resource, idsOfSome, page.readAt);
      return { ...written, rejected: 0 };
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
          some.map(({ id }) => id),
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
    return await write(page, ids).catch((error: unknown) => {
      if (!isRefusal(error)) throw error;
      return writeParts();
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}

export const nothingWritten: PageWritten = { inserted: 0, changed: 0, rejected: 0 };

export function sum(a: PageWritten, b: PageWritten): PageWritten {
  return {
    inserted: a.inserted + b.inserted,
    changed: a.changed + b.changed,
    rejected: a.rejected + b.rejected,
  };
}
