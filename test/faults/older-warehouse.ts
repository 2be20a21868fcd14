import { sql } from 'drizzle-orm';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
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

/** Lists the definitions in metersync's schemas as text, without what depends on the data. */
export async function schemaOf(db: Warehouse['db']): Promise<string[]> {
  const { rows } = await db.execute<{ line: string }>(sql`
    with ours as (
      select oid, nspname from pg_namespace
      where nspname in ('analytics', 'history', 'metersync', 'metersync_migrations', 'ops', 'utility')
    ), relations as (
      select c.oid, c.oid::regclass::text as name, c.relkind, c.reloptions
      from pg_class c join ours on ours.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v') and not c.relispartition
    )
    select concat_ws(' ', 'column', r.name, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
      col_description(r.oid, a.attnum)) as line
    from relations r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    union all
    select concat_ws(' ', 'constraint', r.name, c.conname, pg_get_constraintdef(c.oid))
    from relations r join pg_constraint c on c.conrelid = r.oid and c.contype <> 'n'
    union all
    select concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid)) from relations r join pg_index i on i.indrelid = r.oid
    union all
    select concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid))
    from relations r join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
    union all
    select concat_ws(' ', 'view', name, reloptions::text, pg_get_viewdef(oid)) from relations where relkind = 'v'
    union all
    select concat_ws(' ', 'function', pg_get_functiondef(p.oid)) from pg_proc p join ours on ours.oid = p.pronamespace
    order by line`);
  return rows.map(({ line }) => line);
}

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
