import { sql } from 'drizzle-orm';
import type { Database } from '../db/connection/connect.ts';
import { generatedFrom } from './markdown.ts';

/** Schemas in the order of the page. If one is missing here, creating the page fails. */
const schemas = ['analytics', 'utility', 'fields', 'ops', 'history', 'metersync'];

interface Relation {
  readonly schema: string;
  readonly schema_comment: string | null;
  readonly name: string;
  readonly comment: string | null;
  readonly columns: readonly Column[];
  readonly key: readonly string[];
}
interface Column {
  readonly name: string;
  readonly type: string;
  readonly comment: string | null;
}

/** The schema that only metersync uses. The page does not list its tables, but refers to psql. */
const internal = 'metersync';

/** Schemas whose relations all have the same form. The page lists only their names. */
const alike = ['fields', 'history'];

/**
 * Creates docs/reference/dictionary.md from the catalogue and comments of a migrated warehouse. A column that
 * means the same in several relations is described once. A column without a comment says by its name what it is.
 * @throws Error that names every schema, table and view without a comment
 */
export async function dictionaryPage(db: Database): Promise<string> {
  const relations = await readRelations(db);
  const silent = withoutComment(relations);
  if (silent.length > 0) throw new Error(`without a comment: ${silent.join(', ')}`);
  const described = relations.filter(({ schema }) => schema !== internal && !alike.includes(schema));
  const shared = sharedAmong(described.flatMap(({ columns }) => columns));
  return [
    generatedFrom('the comments in db/migrations and analytics'),
    '# Data dictionary',
    '',
    'Every table, view and column, by the comments that `\\d+ analytics.bills` shows in psql.',
    '[What you can query](../analytics.md) says where to begin.',
    '',
    '- A column listed by name is described under [shared columns](#shared-columns), unless its name says what it is.',
    '- The key of a table is `id`, unless its description names another. `company_id` is the `id` of a company,',
    '  and so on.',
    '- Types are named for ranges, arrays and JSON.',
    '- What is unknown or does not apply is NULL. The end of a range is not included.',
    '',
    '## Shared columns',
    '',
    ...[...shared.values()].sort(),
    ...schemas.flatMap((schema) =>
      describeSchema(
        relations.filter((relation) => relation.schema === schema),
        shared,
      ),
    ),
    '',
  ].join('\n');
}

/**
 * Reads the tables and views of our schemas. Partitions are left out, because they have the columns of their
 * table.
 */
async function readRelations(db: Database): Promise<Relation[]> {
  const { rows } = await db.execute<Relation & Record<string, unknown>>(sql`
    select n.nspname as schema, obj_description(n.oid, 'pg_namespace') as schema_comment, c.relname as name,
      obj_description(c.oid, 'pg_class') as comment,
      (
        select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
          'comment', col_description(c.oid, a.attnum)) order by a.attnum)
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
  const forgotten = rows.filter(({ schema }) => !schemas.includes(schema));
  if (forgotten.length > 0) throw new Error(`the dictionary leaves out schema ${forgotten[0]?.schema}`);
  return rows.sort((a, b) => schemas.indexOf(a.schema) - schemas.indexOf(b.schema));
}

function withoutComment(relations: readonly Relation[]): string[] {
  const silent = relations.flatMap((relation) => {
    const name = `${relation.schema}.${relation.name}`;
    return [
      ...(relation.schema_comment === null ? [`schema ${relation.schema}`] : []),
      ...(relation.comment === null ? [name] : []),
    ];
  });
  return [...new Set(silent)];
}

/** Maps names of columns to the most frequent description of each, if several relations have it. */
function sharedAmong(columns: readonly Column[]): ReadonlyMap<string, string> {
  return new Map(
    [...Map.groupBy(columns.filter(isToDescribe), ({ name }) => name)].flatMap(([name, those]) => {
      const byLine = [...Map.groupBy(those, columnLine)].sort(([, a], [, b]) => b.length - a.length);
      const [line = '', uses = []] = byLine[0] ?? [];
      return uses.length > 1 ? [[name, line] as const] : [];
    }),
  );
}

function describeSchema(relations: readonly Relation[], shared: ReadonlyMap<string, string>): string[] {
  const [{ schema, schema_comment } = { schema: '', schema_comment: null }] = relations;
  const head = ['', `## Schema \`${schema}\``, '', schema_comment ?? ''];
  if (schema === internal) return [...head, '', `\`\\d+ ${schema}.*\` describes its tables and views.`];
  if (alike.includes(schema)) return [...head, '', `${listed(relations.map(fullName))}.`];
  return [
    ...head,
    ...relations.flatMap((relation, at) => [
      '',
      ...describeRelation(relation, relations.slice(0, at), shared),
    ]),
  ];
}

function describeRelation(
  relation: Relation,
  earlier: readonly Relation[],
  shared: ReadonlyMap<string, string>,
): string[] {
  const { comment, key, columns } = relation;
  const lines = columns.map(columnLine);
  // The last of them: of a view and its parts, the largest.
  const same = earlier.findLast(
    (one) => one.columns.length > 10 && one.columns.every((column) => lines.includes(columnLine(column))),
  );
  const own = columns.filter((column) => !same?.columns.some(({ name }) => name === column.name));
  const described = own.filter(
    (column) => isToDescribe(column) && shared.get(column.name) !== columnLine(column),
  );
  const named = own.filter((column) => !described.includes(column)).map(({ name }) => name);
  return [
    `### ${fullName(relation)}`,
    '',
    `${comment}${key.length === 0 || key.join() === 'id' ? '' : ` Key: ${listed(key)}.`}`,
    '',
    ...(same === undefined ? [] : [`- all columns of \`${fullName(same)}\``]),
    ...(named.length === 0 ? [] : [`- ${listed(named)}`]),
    ...described.map(columnLine),
  ];
}

/** Whether the name of a column does not say what it is, or the page has to name its type. */
const isToDescribe = ({ type, comment }: Column): boolean => comment !== null || !isPlain(type);

const fullName = ({ schema, name }: Relation): string => `${schema}.${name}`;
const columnLine = ({ name, type, comment }: Column): string =>
  `- \`${name}\`${isPlain(type) ? '' : ` ${type}`}${comment === null ? '' : `: ${comment}`}`;

/** Whether the page leaves out the type, because it is one of the usual types of plain values. */
const isPlain = (type: string): boolean =>
  /^(text|uuid|boolean|date|numeric|smallint|integer|bigint|timestamp.* with time zone)$/.test(type);

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');
