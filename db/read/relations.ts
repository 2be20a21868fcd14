import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';

/** Schemas that people may read. The schemas that were made for analysis come first. */
export const readSchemas = ['analytics', 'fields', 'utility', 'ops', 'history'] as const;

export interface RelationColumn {
  readonly name: string;
  /** Postgres's name of the type without length or precision, such as `uuid[]`. */
  readonly type: string;
}

/** A table or view, with its columns in order. */
export interface Relation {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly RelationColumn[];
}

/** Lists the tables and views of `readSchemas` by schema, without partitions. */
export async function listRelations(db: Executor): Promise<Omit<Relation, 'columns'>[]> {
  const schemas = array(readSchemas, 'text');
  return await db
    .select({ schema: sql<string>`n.nspname`, name: sql<string>`c.relname` })
    .from(sql`pg_class c`)
    .innerJoin(sql`pg_namespace n`, sql`n.oid = c.relnamespace`)
    .where(sql`c.relkind in ('r', 'v', 'm', 'p', 'f')
      and not c.relispartition
      and n.nspname = any(${schemas})`)
    .orderBy(sql`array_position(${schemas}, n.nspname::text), c.relname`);
}

export async function readColumns(
  db: Executor,
  { schema, name }: Omit<Relation, 'columns'>,
): Promise<RelationColumn[]> {
  return await db
    .select({
      name: sql<string>`a.attname`,
      type: sql<string>`format_type(a.atttypid, null)`,
    })
    .from(sql`pg_attribute a`)
    .where(sql`a.attrelid = format('%I.%I', ${schema}::text, ${name}::text)::regclass
      and a.attnum > 0
      and not a.attisdropped`)
    .orderBy(sql`a.attnum`);
}

export const relationName = ({ schema, name }: Omit<Relation, 'columns'>): SQL =>
  sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
