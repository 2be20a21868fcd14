import { getTableColumns, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from './connect.ts';

/** Creates a table that only this session sees, until the transaction ends. */
export async function createTempTable(tx: Executor, table: PgTable): Promise<void> {
  const columns = Object.values(getTableColumns(table)).map(
    (column) => sql`${sql.identifier(column.name)} ${sql.raw(column.getSQLType())}`,
  );
  await tx.execute(sql`create temp table ${table} (${sql.join(columns, sql`, `)}) on commit drop`);
}
