import { sql } from 'drizzle-orm';
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from './connect.ts';

/** Creates a declared table as a temporary table that exists until the transaction ends. */
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
