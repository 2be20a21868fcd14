import { sql } from 'drizzle-orm';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
import { describeSchema } from '../postgres/schema.ts';
import { createDatabase } from '../support/database.ts';

/** The columns and the content of a table that contains records or facts. */
export interface TableContent {
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: number;
  /** A hash that is equal for the same rows in any order. */
  readonly hash: string;
}

/** Columns that a migration may change, because it may tombstone usage of deleted documents. */
const changing = ['deleted_at', 'deleted_reason'];

/** Reads the content of tables of records, history and facts: of those in `of`, by default of all. */
export async function contentOf(
  { db }: Warehouse,
  of?: readonly TableContent[],
): Promise<readonly TableContent[]> {
  const tables = of ?? (await tablesOf(db));
  const contents: TableContent[] = [];
  for (const { name, columns } of tables) {
    const row = columns.map((column) => `t."${column}"::text`).join(', ');
    const { rows } = await db.execute<Pick<TableContent, 'rows' | 'hash'>>(
      sql.raw(`select count(*)::int as rows, coalesce(sum(hashtextextended(row(${row})::text, 0)), 0)::text as hash
        from ${name} t`),
    );
    for (const content of rows) contents.push({ name, columns, ...content });
  }
  return contents;
}

async function tablesOf(db: Warehouse['db']): Promise<Pick<TableContent, 'name' | 'columns'>[]> {
  const { rows } = await db.execute<Pick<TableContent, 'name' | 'columns'>>(sql`
    select c.oid::regclass::text as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where not c.relispartition
      and (
        c.relkind in ('r', 'p')
        and c.relnamespace in ('utility'::regnamespace, 'ops'::regnamespace)
        and c.relname <> 'contract_changes'
        or c.relkind in ('r', 'v')
        and c.relnamespace = 'history'::regnamespace
        or c.oid in ('metersync.events'::regclass, 'metersync.deletes'::regclass, 'metersync.runs'::regclass)
      )
      and not (c.relname = 'usage_data' and a.attname in (${sql.join(
        changing.map((name) => sql`${name}`),
        sql`, `,
      )}))
    group by c.oid
    order by 1`);
  return rows;
}

/** Counts the stored months that differ from the months that are computed from the records. */
export async function differingMonths({ db }: Warehouse): Promise<number> {
  const kinds = ['monthly_usage', 'monthly_cost'];
  const rowsOf = (suffix: string) =>
    kinds.map((kind) => `select '${kind}', m::text from metersync.${kind}${suffix} m`).join(' union all ');
  const { rows } = await db.execute<{ rows: number }>(
    sql.raw(`with kept as (${rowsOf('')}), worked_out as (${rowsOf('_now')})
      select count(*)::int as rows from (
        (table kept except all table worked_out) union all (table worked_out except all table kept)
      ) differing`),
  );
  return rows[0]?.rows ?? 0;
}

/** Describes the schema, without what depends on the data, and what the test adds. */
export const schemaOf = async (db: Warehouse['db']): Promise<string[]> =>
  (await describeSchema(db)).filter(
    (line) => !/utility\.intervals_\d|^\w+ (fields|ledger)\.|^grant .* auditor$/.test(line),
  );

/** Lists the same definitions of a new warehouse. */
export async function freshSchema(): Promise<string[]> {
  const database = await createDatabase('fresh');
  const warehouse = connectWarehouse({ url: database.url, timeZone: 'UTC', max: 2, onError: () => {} });
  try {
    await migrateWarehouse(warehouse.db);
    return await schemaOf(warehouse.db);
  } finally {
    await warehouse.close();
    await database.drop();
  }
}
