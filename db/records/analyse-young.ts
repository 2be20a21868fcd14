import { sql } from 'drizzle-orm';
import type { Warehouse } from '../connection/connect.ts';
import { type RecordResource, tableName, tableOf } from '../resources.ts';
import { utility } from '../schema/utility.ts';

/** Number of rows that this process adds before it checks whether a table was analysed. */
const rowsMin = 1_000;

/**
 * Analyses a new table once it has some pages of records. Until then Postgres plans for a few rows,
 * and autovacuum needs a minute or more. Each process decides once per table.
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
  const [found] = await db
    .select({ young: sql<boolean>`reltuples < 0` })
    .from(sql`pg_class`)
    .where(sql`oid = ${table}::regclass`);
  if (found?.young === true) await db.execute(sql`analyze ${tableOf(resource)}`);
}
