import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { connectWarehouse, type Database } from '../db/connect.ts';
import { migrateWarehouse } from '../db/migrate.ts';
import { startEmbedded } from '../embedded/start.ts';
import { markdownTable } from './markdown.ts';

/** Runs work on a newly migrated warehouse, and removes that. */
export async function withMigratedWarehouse<T>(work: (db: Database) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'metersync-verify-'));
  try {
    const stack = await startEmbedded({ dir, postgres: true, temporal: false });
    try {
      const url = (await stack.postgres?.ensureDatabase('warehouse')) ?? '';
      const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
      try {
        await migrateWarehouse(warehouse.db);
        return await work(warehouse.db);
      } finally {
        await warehouse.close();
      }
    } finally {
      await stack.stop();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Makes the generated part of docs/warehouse.md. */
export const describeWarehouse = (db: Database): Promise<string> =>
  describeSchemas(db, ['utility', 'metersync']);

interface Described {
  readonly comment: string | null;
}
interface Relation extends Described {
  readonly schema: string;
  readonly schema_comment: string | null;
  readonly name: string;
  readonly columns: readonly Column[];
  readonly key: readonly string[];
}
interface Column extends Described {
  readonly name: string;
  readonly type: string;
  readonly not_null: boolean;
}

/**
 * Describes schemas, in this order, from the catalogue and comments of the database itself.
 * @throws Error that names every schema, table and column without a comment
 */
export async function describeSchemas(db: Database, schemas: readonly string[]): Promise<string> {
  const relations = (await readRelations(db)).filter(({ schema }) => schemas.includes(schema));
  const silent = withoutComment(relations);
  if (silent.length > 0) throw new Error(`without a comment: ${silent.join(', ')}`);
  return schemas.map((schema) => describeSchema(relations.filter((of) => of.schema === schema))).join('\n\n');
}

/** Reads the tables and views of our schemas, without partitions, which are like their table. */
async function readRelations(db: Database): Promise<Relation[]> {
  const { rows } = await db.execute<Relation & Record<string, unknown>>(sql`
    select n.nspname as schema, obj_description(n.oid, 'pg_namespace') as schema_comment, c.relname as name,
      obj_description(c.oid, 'pg_class') as comment,
      (
        select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
          'not_null', a.attnotnull, 'comment', col_description(c.oid, a.attnum)) order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      ) as columns,
      coalesce((
        select json_agg(a.attname order by array_position(i.indkey::int2[], a.attnum))
        from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey::int2[])
        where i.indrelid = c.oid and i.indisprimary
      ), '[]') as key
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
      and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'public', 'metersync_migrations')
    order by n.nspname, c.relname`);
  return rows;
}

function withoutComment(relations: readonly Relation[]): string[] {
  const silent = relations.flatMap((relation) => {
    const name = `${relation.schema}.${relation.name}`;
    return [
      ...(relation.schema_comment === null ? [`schema ${relation.schema}`] : []),
      ...(relation.comment === null ? [name] : []),
      ...relation.columns.filter(({ comment }) => comment === null).map((column) => `${name}.${column.name}`),
    ];
  });
  return [...new Set(silent)];
}

function describeSchema(relations: readonly Relation[]): string {
  const [first] = relations;
  return [
    `### Schema \`${first?.schema}\``,
    '',
    first?.schema_comment,
    ...relations.flatMap((relation) => ['', ...describeRelation(relation)]),
  ].join('\n');
}

function describeRelation({ schema, name, comment, key, columns }: Relation): string[] {
  const keyed = key.length === 0 ? '' : ` Key: ${key.map((column) => `\`${column}\``).join(', ')}.`;
  return [
    `#### ${schema}.${name}`,
    '',
    `${comment}${keyed}`,
    '',
    markdownTable(
      ['Column', 'Type', 'What it holds'],
      columns.map((column) => [`\`${column.name}\``, shortType(column), column.comment ?? '']),
    ),
  ];
}

function shortType({ type, not_null }: Column): string {
  const short = type.replace(/timestamp(\(\d\))? with time zone/, 'timestamptz');
  return not_null ? `${short}, not null` : short;
}
