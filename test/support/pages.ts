import { sql } from 'drizzle-orm';
import type { Warehouse } from '../../db/connection/connect.ts';
import type { RecordPage } from '../../db/records/page.ts';
import { nothingWritten, type PageWritten, sum, writePage } from '../../db/records/write-page.ts';
import { type RecordResource, tableOf } from '../../db/resources.ts';

export type Listing = RecordResource;

/** A record as the service sends it: an object, or its JSON text where the spelling of a value matters. */
export type SentRecord = string | object;

export interface Read {
  /** When the read began. */
  readonly readAt?: string;
  /** Company whose listing contains the records. */
  readonly companyId?: string | null;
  readonly apiVersion?: string;
  /** As in `RecordPage`. */
  readonly confirms?: boolean;
}

/** Makes one page of a listing of records, in the service's own text. */
export function pageOfRecords(
  records: readonly SentRecord[],
  { readAt = '2026-06-01T00:00:00Z', companyId = null, apiVersion = 'v2.2', confirms = false }: Read = {},
): RecordPage {
  const texts = records.map((record) => (typeof record === 'string' ? record : JSON.stringify(record)));
  return {
    body: `{"items":[${texts.join(',')}]}`,
    itemsKey: 'items',
    companyId,
    readAt,
    apiVersion,
    confirms,
  };
}

/** Writes records as one page of their listing; `usageOfRecords` means the same as in `RecordPage`. */
export async function writeRecords(
  warehouse: Warehouse,
  listing: Listing,
  records: readonly SentRecord[],
  read: Read = {},
  usageOfRecords = false,
): Promise<PageWritten> {
  const ids = records.map((record): string | null => {
    const { id } = (typeof record === 'string' ? JSON.parse(record) : record) as { id?: unknown };
    return typeof id === 'string' ? id : null;
  });
  const page = { ...pageOfRecords(records, read), usageOfRecords };
  const written = await writePage(warehouse.db, listing, page, ids);
  return sum(nothingWritten, written);
}

/** Reads the row of a record, with `version`, which changes whenever Postgres writes the row. */
export async function rowOf(
  warehouse: Warehouse,
  listing: Listing,
  id: string,
): Promise<Record<string, unknown> | undefined> {
  const result = await warehouse.db.execute(
    sql`select *, xmin::text || '/' || ctid::text as version from ${tableOf(listing)}
      where id::text = ${id}`,
  );
  return result.rows[0];
}
