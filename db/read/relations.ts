import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';

/** Schemas that can be read; those made for questions come first. */
export const readSchemas = ['analytics', 'fields', 'utility', 'ops', 'history'] as const;

export interface RelationColumn {
  readonly name: string;
  /**
   * Postgres's name of the type, without length or precision: `timestamp with time zone`, `uuid[]`.
   */
  readonly type: string;
}

/** A table or view, with its columns in order. */
export interface Relation {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly RelationColumn[];
}

const names = (of: readonly string[]): SQL =>
  sql.join(
    of.map((name) => sql`${name}::text`),
    sql`, `,
  );

/**
 * Lists tables and views of the schemas for reading, by schema; partitions belong to their table.
 */
export async function listRelations(db: Executor): Promise<Omit<Relation, 'columns'>[]> {
  const { rows } = await db.execute<{ schema: string; name: string }>(sql`
    select
      n.nspname as schema,
      c.relname as name
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'v', 'm', 'p', 'f')
      and not c.relispartition
      and n.nspname in (${names(readSchemas)})
    order by array_position(array[${names(readSchemas)}], n.nspname::text), c.relname`);
  return rows;
}

export async function readColumns(
  db: Executor,
  { schema, name }: Omit<Relation, 'columns'>,
): Promise<RelationColumn[]> {
  const { rows } = await db.execute<{ name: string; type: string }>(sql`
    select
      a.attname as name,
      format_type(a.atttypid, null) as type
    from pg_attribute a
    where a.attrelid = format('%I.%I', ${schema}::text, ${name}::text)::regclass
      and a.attnum > 0
      and not a.attisdropped
    order by a.attnum`);
  return rows as RelationColumn[];
}

export const relationName = ({ schema, name }: Omit<Relation, 'columns'>): SQL =>
  sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
