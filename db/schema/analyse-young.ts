import { sql } from 'drizzle-orm';
import type { Warehouse } from '../connect.ts';
import { type RecordResource, tableName, tableOf } from '../resources.ts';
import { utility } from './utility.ts';

/** Rows that this process adds to a table before it looks whether Postgres knows it: some pages. */
const rowsMin = 1_000;

/**
 * Has Postgres look at a table that began empty once its first pages are there: until then it plans
 * for a table of a few rows, and its own look comes after a minute or more. Decided once by a
 * process for each table.
 */
export async function analyseYoung(
  { db, rowsAdded }: Pick<Warehouse, 'db' | 'rowsAdded'>,
  resource: RecordResource,
  inserted: number,
): Promise<void> {
  const before = rowsAdded.get(resource) ?? 0;
  if (before >= rowsMin || inserted === 0) return;
  rowsAdded.set(resource, before + inserted);
  if (before + inserted < rowsMin) return;
  const table = `${utility.schemaName}.${tableName(resource)}`;
  const { rows } = await db.execute<{ young: boolean }>(sql`
    select reltuples < 0 as young
    from pg_class
    where oid = ${table}::regclass`);
  if (rows[0]?.young === true) await db.execute(sql`analyze ${tableOf(resource)}`);
}
