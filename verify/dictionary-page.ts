import { sql } from 'drizzle-orm';
import type { Database } from '../db/connect.ts';
import { generatedFrom } from './markdown.ts';

/** The order of the page. A schema that is missing here fails it. */
const schemas = ['analytics', 'utility', 'fields', 'ops', 'history', 'metersync'];

/** Relations of one to many, by the column of the many that refers to the one. */
const joins: readonly (readonly [one: string, many: string, column: string])[] = [
  ['companies', 'sites', 'company_id'],
  ['companies', 'connections', 'company_id'],
  ['connections', 'connection_sites', 'connection_id'],
  ['sites', 'connection_sites', 'site_id'],
  ['sites', 'meters', 'site_id'],
  ['companies', 'documents', 'company_id'],
  ['documents', 'usage_data', 'document_id'],
  ['documents', 'documents', 'revised_document_id'],
  ['meters', 'usage_data', 'meter_id'],
  ['meters', 'intervals', 'meter_id'],
  ['connections', 'connection_status_changes', 'connection_id'],
];

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

/** The schema of metersync alone, whose tables the page leaves to psql. */
const internal = 'metersync';

/** Schemas whose relations are all alike and have shared columns alone: the page names them. */
const alike = ['fields', 'history'];

/** A meaning that a column has in as many relations stands in the list of shared columns. */
const sharedBy = 2;

/** Columns of one name, type and comment, and the relations that have one, in the order of the page. */
interface Meaning {
  readonly column: Column;
  readonly relations: readonly Relation[];
}
type Meanings = ReadonlyMap<string, Meaning>;

/**
 * Makes docs/reference/dictionary.md from the catalogue and comments of a migrated warehouse. Columns
 * that mean the same in several relations are described in a list of their own. A column whose comment
 * has the words of its name alone stands by name. A second name of a column is left out.
 * Tables of metersync alone are left to psql.
 * @throws Error that names every schema, table and column without a comment
 */
export async function dictionaryPage(db: Database): Promise<string> {
  const relations = await readRelations(db);
  const silent = withoutComment(relations);
  if (silent.length > 0) throw new Error(`without a comment: ${silent.join(', ')}`);
  const meanings = meaningsIn(relations.filter(({ schema }) => schema !== internal));
  const aliases = aliasesIn(relations);
  const shared = sharedAmong(meanings);
  return [
    generatedFrom('the comments in db/migrations and analytics'),
    '# Data dictionary',
    '',
    'Every table, view and column, by the comments that `\\d+ analytics.bills` shows in psql.',
    '[Warehouse](../guides/warehouse.md) and [analytics](../guides/analytics.md) say more.',
    '',
    '- A column listed by name is described under [shared columns](#shared-columns), or its name says all.',
    '- The key of a table is `id`, unless it names another.',
    '- Amounts are `numeric`, times `timestamptz`, days `date`. Types of ranges, arrays and JSON are named.',
    '- What is unknown or does not apply is NULL. Ends are not included.',
    `- Left out, where they say the same: ${[...aliases].map(([alias, name]) => `\`${alias}\` (as \`${name}\`)`).join(', ')}.`,
    '',
    '## How records join',
    '',
    diagram(relations),
    '',
    '## Shared columns',
    '',
    ...[...shared].map((key) => columnLine((meanings.get(key) as Meaning).column)).sort(),
    ...schemas.flatMap((schema) =>
      describeSchema(
        relations.filter((relation) => relation.schema === schema),
        meanings,
        shared,
      ),
    ),
    '',
  ].join('\n');
}

/** Reads the tables and views of our schemas, without partitions, which are like their table. */
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
      ...relation.columns.filter(({ comment }) => comment === null).map((column) => `${name}.${column.name}`),
    ];
  });
  return [...new Set(silent)];
}

/** Groups the columns of all relations by what they mean. */
function meaningsIn(relations: readonly Relation[]): Meanings {
  const uses = relations.flatMap((relation) => relation.columns.map((column) => ({ relation, column })));
  const groups = Map.groupBy(uses, ({ column }) => keyOf(column));
  return new Map(
    [...groups].map(([key, those]) => [
      key,
      { column: (those[0] as { column: Column }).column, relations: those.map(({ relation }) => relation) },
    ]),
  );
}

const keyOf = ({ name, type, comment }: Column): string =>
  JSON.stringify([name, isPlain(type) ? '' : type, comment]);

/** Returns what a column of each name means in most relations, if several describe it so. */
function sharedAmong(meanings: Meanings): ReadonlySet<string> {
  /** Relations that would describe it: not those that refer to another one. */
  const describing = ({ relations }: Meaning): number => {
    const whole = (relation: Relation) => containedIn(relation, meanings);
    const own = relations.filter((relation) => !relations.some((other) => whole(relation) === other));
    const detailed = own.filter(isDetailed);
    return (detailed.length === 0 ? own : detailed).length;
  };
  const counted = [...meanings]
    .filter(([, { column }]) => aliasOf(column) === undefined)
    .map(([key, meaning]) => ({ key, ...meaning, uses: describing(meaning) }));
  const most = [...Map.groupBy(counted, ({ column }) => column.name).values()]
    .filter((those) => !those.some((one) => isNameInWords(one.column) && one.relations.some(isDetailed)))
    .flatMap((those) => those.sort((a, b) => b.uses - a.uses).slice(0, 1));
  return new Set(most.filter(({ uses }) => uses >= sharedBy).map(({ key }) => key));
}

function describeSchema(
  relations: readonly Relation[],
  meanings: Meanings,
  shared: ReadonlySet<string>,
): string[] {
  const [{ schema, schema_comment } = { schema: '', schema_comment: null }] = relations;
  const head = ['', `## Schema \`${schema}\``, '', schema_comment ?? ''];
  if (schema === internal) return [...head, '', `\`\\d+ ${schema}.*\` describes its tables and views.`];
  if (alike.includes(schema)) return [...head, '', `${listed(relations.map(fullName))}.`];
  return [...head, ...relations.flatMap((one) => ['', ...describeRelation(one, meanings, shared)])];
}

function describeRelation(relation: Relation, meanings: Meanings, shared: ReadonlySet<string>): string[] {
  const { comment, key, columns } = relation;
  const whole = containedIn(relation, meanings);
  const where = (column: Column): 'whole' | 'named' | 'here' => {
    if (whole !== undefined && meanings.get(keyOf(column))?.relations.includes(whole)) return 'whole';
    return shared.has(keyOf(column)) || isNameInWords(column) ? 'named' : 'here';
  };
  const own = columns.filter((column) => aliasOf(column) === undefined);
  const { here = [], named = [], whole: ofWhole = [] } = Object.groupBy(own, where);
  return [
    `### ${fullName(relation)}`,
    '',
    `${comment}${key.length === 0 || key.join() === 'id' ? '' : ` Key: ${listed(key)}.`}`,
    '',
    ...(whole === undefined ? [] : [everyColumnOf(whole, ofWhole)]),
    ...(named.length === 0 ? [] : [`- ${listed(named.map(({ name }) => name))}`]),
    ...here.map(columnLine),
  ];
}

/** Words that add nothing to a name. */
const fillers = /^(?:a|at|by|for|id|in|is|it|name|of|on|one|record|that|the|their|whether)$/;
const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .map((word) => word.replace(/s$/, ''))
    .filter((word) => word !== '' && !fillers.test(word));

/** Whether a comment says nothing but the words of the name. */
const isNameInWords = ({ name, comment }: Column): boolean =>
  wordsOf(comment ?? '').every((word) => wordsOf(name).includes(word));

/** Returns the column that a column has under another name, as its comment says. */
const aliasOf = ({ comment }: Column): string | undefined => /^The same as (\w+)\.$/.exec(comment ?? '')?.[1];

/** Lists the columns that have another's values, in the order of their names. */
function aliasesIn(relations: readonly Relation[]): ReadonlyMap<string, string> {
  const pairs = relations
    .flatMap(({ columns }) => columns)
    .flatMap((column) => {
      const name = aliasOf(column);
      return name === undefined ? [] : [[column.name, name] as const];
    });
  return new Map(pairs.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function everyColumnOf(relation: Relation, found: readonly Column[]): string {
  const names = found.map(({ name }) => name);
  const own = relation.columns.filter((column) => aliasOf(column) === undefined);
  const missing = own.map(({ name }) => name).filter((name) => !names.includes(name));
  return `- every column of ${linkTo(relation)}${missing.length === 0 ? '' : ` but ${listed(missing)}`}`;
}

/** Finds the largest earlier relation of which a relation has all columns but one at most. */
function containedIn(relation: Relation, meanings: Meanings): Relation | undefined {
  const sharers = relation.columns.flatMap((column) => {
    const { relations = [] } = meanings.get(keyOf(column)) ?? {};
    return relations.slice(0, relations.indexOf(relation));
  });
  const [largest] = [...Map.groupBy(sharers, (sharer) => sharer)]
    .filter(([{ columns }, those]) => those.length > 4 && columns.length - those.length <= 1)
    .sort(([, a], [, b]) => b.length - a.length);
  return largest?.[0];
}

/** Whether the page describes the columns of a relation. */
const isDetailed = ({ schema }: Relation): boolean => !alike.includes(schema);
const fullName = ({ schema, name }: Relation): string => `${schema}.${name}`;
const linkTo = (relation: Relation): string =>
  `[${fullName(relation)}](#${fullName(relation).replace('.', '')})`;
const columnLine = ({ name, type, comment }: Column): string =>
  `- \`${name}\`${isPlain(type) ? '' : ` ${type}`}: ${comment}`;

/** Whether the type is one of a plain value, which the page leaves out. */
const isPlain = (type: string): boolean =>
  /^(text|uuid|boolean|date|numeric|smallint|integer|bigint|timestamp.* with time zone)$/.test(type);

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');

/**
 * Draws how the tables of utility join.
 * @throws Error that names a missing column of `joins`
 */
function diagram(relations: readonly Relation[]): string {
  for (const [, many, column] of joins) {
    const table = relations.find(({ schema, name }) => schema === 'utility' && name === many);
    if (!table?.columns.some(({ name }) => name === column))
      throw new Error(`the diagram names utility.${many}.${column}, which is not there`);
  }
  const lines = joins.map(([one, many, column]) => `  ${one} ||--o{ ${many} : ${column}`);
  return ['```mermaid', 'erDiagram', ...lines, '```'].join('\n');
}
