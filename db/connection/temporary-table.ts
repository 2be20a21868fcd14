import { sql } from 'drizzle-orm';
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from './connect.ts';

/** Makes a table as it is declared, which is gone when the transaction ends. */
export async function makeTemporary(tx: Executor, table: PgTable): Promise<void> {
  const { name, columns, checks } = getTableConfig(table);
  const parts = [
    ...columns.map((column) => {
      const type = sql.raw(`${column.getSQLType()}${column.notNull ? ' not null' : ''}`);
      return sql`${sql.identifier(column.name)} ${type}`;
    }),
    ...checks.map(({ value }) => sql`check (${value})`),
  ];
  await tx.execute(
    sql`create temp table ${sql.identifier(name)} (${sql.join(parts, sql`, `)}) on commit drop`,
  );
}
