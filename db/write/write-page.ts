import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Database, Executor } from '../connect.ts';
import { isRefusal, sqlMessage, warehouseFailure } from '../failures.ts';
import { itemList, type RecordPage, type Slice, type UpsertPage, type WrittenRows } from './page.ts';

export interface PageWritten extends WrittenRows {
  readonly rejected: number;
}

/**
 * Writes a page in one transaction. A record that Postgres refuses goes to `metersync.rejected_records` with its
 * text, after the page was split to find it; its neighbours are written. `ids` are the ids of the page's items, in
 * order, null where a record has none.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writePage(
  db: Database,
  resource: string,
  upsert: UpsertPage,
  page: RecordPage,
  ids: readonly (string | null)[],
): Promise<PageWritten> {
  const writeSlice = async (slice: Slice): Promise<PageWritten> => {
    try {
      return { ...(await db.transaction((tx) => upsert(tx, page, slice))), rejected: 0 };
    } catch (error) {
      if (!isRefusal(error) || ids.length === 0) throw error;
      const { first, last } = slice ?? { first: 1, last: ids.length };
      if (slice !== null && first === last) {
        await rejectRecord(db, resource, page, first, ids[first - 1] ?? null, sqlMessage(error));
        return { inserted: 0, changed: 0, rejected: 1 };
      }
      const middle = Math.floor((first + last) / 2);
      const lower = await writeSlice({ first, last: middle });
      const upper = middle < last ? await writeSlice({ first: middle + 1, last }) : nothingWritten;
      return sum(lower, upper);
    }
  };
  try {
    return await writeSlice(null);
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

/** Keeps one item of a page, by its place (from 1), with the reason why it is in no table. */
export async function rejectRecord(
  db: Executor,
  resource: string,
  page: Pick<RecordPage, 'body' | 'itemsKey' | 'joined' | 'companyId'>,
  place: number,
  id: string | null,
  error: string,
): Promise<void> {
  const printable = id?.replaceAll('\0', '\\0').toWellFormed().slice(0, 200);
  const recordId = printable ?? createHash('sha256').update(page.body).update(String(place)).digest('hex');
  await db.execute(sql`
    insert into metersync.rejected_records as x (resource, record_id, company_id, error, record)
    select ${resource}, ${recordId}, ${page.companyId}::uuid, ${error}, r::text
    from json_array_elements(${itemList(page, 'json')}) with ordinality as t (r, place) where place = ${place}
    on conflict (resource, record_id) do update set
      error = excluded.error, record = excluded.record, rejected_at = excluded.rejected_at`);
}
