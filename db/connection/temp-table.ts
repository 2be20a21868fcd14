import { sql } from 'drizzle-orm';
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from './connect.ts';

/** Creates a table that only this session sees, until the transaction ends, with the columns and checks of `table`. */
export async function createTempTable(tx: Executor, table: PgTable): Promise<void> {
  const { columns, checks } = getTableConfig(table);
  const parts = [
    ...columns.map((column) => {
      const type = sql.raw(`${column.getSQLType()}${column.notNull ? ' not null' : ''}`);
      return sql`${sql.identifier(column.name)} ${type}`;
    }),
    ...checks.map(({ value }) => sql`check (${value})`),
  ];
  await tx.execute(sql`create temp table ${table} (${sql.join(parts, sql`, `)}) on commit drop`);
}
