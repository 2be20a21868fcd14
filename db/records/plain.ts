import { sql } from 'drizzle-orm';
import type { Resource } from '../resources.ts';
import { countWritten, items, type UpsertPage } from './page.ts';
import { upsertRecords } from './upsert.ts';

/** Makes the write of a resource whose records have no parts with tables of their own. */
export const upsertPlain =
  (resource: Resource): UpsertPage =>
  (tx, page, closing) =>
    countWritten(tx, sql`${upsertRecords(resource, { items: items(page), page })}, ${closing}`);
