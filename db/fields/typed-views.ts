import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { serverWaits } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import {
  type Database,
  type Executor,
  lock,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import {
  dependentsIn,
  isMistake,
  isRefusal,
  sqlMessage,
  sqlState,
} from '../connection/failures.ts';
import {
  grantAgain,
  grantsOn,
  isTypedView,
  madeFrom,
  notAsBefore,
} from '../migrate/apply-views.ts';
import { migrations } from '../migrate/migrations.ts';
import { roles } from '../migrate/roles.ts';
import { type Resource, resources, tableName } from '../resources.ts';
import { fieldCatalogue } from '../schema/metersync.ts';
import { anyStep, type FieldKind } from './field-catalogue.ts';

const { escapeIdentifier: quoted, escapeLiteral: literal } = pg;

/** Maximum number of columns of a view, and of views of a resource. `raw` has all fields. */
const [columnsMax, viewsMax] = [1_000, 100];

/** The views that were changed, and those that could not be, with what depends on them. */
export type AppliedTypedViews = Awaited<ReturnType<typeof applyTypedViewsIn>>;

/**
 * Applies the typed views of schema fields in a transaction of its own.
 * @throws Error of Postgres: 55P03 when another session uses a view, 42501 when the login does not
 * own the views
 */
export async function applyTypedViews(db: Database): Promise<AppliedTypedViews> {
  if ((await planChanges(db)).length === 0) return { applied: [], blocked: [] };
  return await withTransaction(db, async (tx) => {
    const wait = String(serverWaits.typedViewsLockMs);
    await tx.execute(sql`select set_config('lock_timeout', ${wait}, true)`);
    return await applyTypedViewsIn(tx);
  });
}

/**
 * Applies the typed views within a transaction that changes the schema. A view with dependents can
 * get further columns; if its columns would have to change, it stays and is reported.
 */
export async function applyTypedViewsIn(tx: Transaction) {
  await lock(tx, migrations);
  const applied: string[] = [];
  const blocked: { view: string; by: readonly string[]; error: string }[] = [];
  const grants: string[] = [];
  for (const { view, change } of await planChanges(tx)) {
    try {
      grants.push(...(await changeView(tx, view, change)));
      applied.push(view);
    } catch (error) {
      const by = dependentsIn(error)?.map((line) => line.replace(/ depends on .*$/, ''));
      if (by === undefined && !isMistake(error) && !isRefusal(error)) throw error;
      blocked.push({ view, by: by ?? [], error: sqlMessage(error) });
    }
  }
  const { rows } = await tx.execute<{ grant: string }>(sql`
    select format('grant select on %s to %I', view, rolname) as grant
    from unnest(${array(applied, 'text')}) as view
      join pg_roles on rolname in (${roles.analyst}, ${roles.writer})`);
  await grantAgain(tx, [...grants, ...rows.map(({ grant }) => grant)]);
  return { applied, blocked };
}

/** Changes a view. If its columns change, it is dropped first, and the grants are returned. */
async function changeView(tx: Transaction, view: string, change: string): Promise<string[]> {
  const run = async (text: string) => await tx.transaction((part) => part.execute(sql.raw(text)));
  try {
    await run(change);
    return [];
  } catch (error) {
    if (sqlState(error) !== notAsBefore) throw error;
  }
  const grants = await grantsOn(tx, view);
  await run(`drop view ${view};\n${change}`);
  return grants;
}

/** Compares the views that the catalogue requires with the existing views. */
async function planChanges(db: Executor): Promise<{ view: string; change: string }[]> {
  const { rows } = await db.execute<{ name: string; isTyped: boolean; comment: string }>(sql`
    select
      c.relname as name,
      ${isTypedView} as "isTyped",
      obj_description(c.oid, 'pg_class') as comment
    from pg_class c
    where c.relnamespace = to_regnamespace('fields')
      and c.relkind in ('r', 'p', 'v', 'm', 'f')`);
  const existing = new Map(rows.map((relation) => [relation.name, relation]));
  const planned = await planViews(db, (name) => existing.get(name)?.isTyped === false);
  const gone = rows.filter(
    ({ name, isTyped }) => isTyped && !planned.some((view) => view.name === name),
  );
  return [
    ...gone.map(({ name }) => ({ view: viewOf(name), change: `drop view ${viewOf(name)}` })),
    ...planned.flatMap(({ name, of, path, columns, query }) => {
      const view = viewOf(name);
      const text = [
        `create or replace view ${view} as\n${query}`,
        ...columns.map(
          (one) => `comment on column ${view}.${quoted(one.name)} is ${literal(one.comment)}`,
        ),
      ].join(';\n');
      const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
      const comment = `Each field of ${of.name}${path} that was ever seen. ${madeFrom} apply (${digest}).`;
      if (existing.get(name)?.comment === comment) return [];
      return [{ view, change: `${text};\ncomment on view ${view} is ${literal(comment)}` }];
    }),
  ];
}

const viewOf = (name: string): string => `fields.${quoted(name)}`;

/** A field of a resource in the catalogue, over all API versions. */
interface Field extends Record<string, unknown> {
  readonly resource: string;
  readonly path: string;
  readonly kinds: readonly FieldKind[];
  /** The time zone of times without a zone. */
  readonly zone: string;
}

/**
 * Plans a view of each resource, and of the elements of each array of objects. If fields want the
 * same name, the field that was seen first gets it. `isTaken`: a user's relation has the name.
 */
export async function planViews(db: Executor, isTaken: (name: string) => boolean) {
  const { rows: fields } = await db.execute<Field>(sql`
    select
      resource,
      path,
      coalesce(array_agg(distinct kind) filter (where kind is not null), '{}') as kinds,
      current_setting('TimeZone') as zone
    from ${fieldCatalogue}
      left join lateral unnest(types) as kind on true
    group by resource, path
    order by min(first_seen_at), path collate "C"`);
  const names = new Set<string>();
  return Object.values(resources).flatMap((of) => {
    const own = fields.filter(({ resource }) => resource === of.name);
    const maps = own.filter(({ kinds }) => kinds.includes('map')).map(({ path }) => `${path}/`);
    const shown = own.filter(({ path }) => !maps.some((map) => path.startsWith(map)));
    const elements = shown.filter(
      ({ path, kinds }) =>
        path.endsWith(`/${anyStep}`) && kinds.includes('object') && !kinds.includes('map'),
    );
    return ['', ...elements.map(({ path }) => path)].slice(0, viewsMax).map((path) => {
      const wanted = [tableName(of.name), ...namesIn(path).map(snakeCase)].join('_');
      const name = freeName(wanted, (taken) => names.has(taken) || isTaken(taken));
      names.add(name);
      return { name, of, path, ...viewAt(path, of, shown) };
    });
  });
}

/** Returns the columns of a view and its query. All names and paths come from the service. */
function viewAt(path: string, of: Resource, fields: readonly Field[]) {
  const column = (name: string, comment: string, value = `r.${name}`) => ({
    name,
    path: '',
    value,
    comment,
  });
  const wanted = [
    column(path === '' ? 'id' : of.key, 'Id of the record.', 'r.id'),
    ...(of.key === 'company_id' ? [] : [column('company_id', 'Company.')]),
    column('api_version', 'Version of the API that it was read from.'),
  ];
  if (path === '') {
    const read = column('synced_at', 'When the read of it began.');
    wanted.push(column('first_synced_at', 'First synced at.'), read);
  }
  const arrays = path.split(`/${anyStep}`).slice(0, -1).map(namesIn);
  let item = 'd.raw';
  const unpacked = arrays.map((names, nth) => {
    const isInner = nth === arrays.length - 1;
    const name = isInner ? 'position' : `${snakeCase(names.at(-1) ?? 'element')}_position`;
    const comment = `Place in the ${isInner ? '' : 'outer '}array, from 1.`;
    wanted.push(column(name, comment, `e${nth}.position::integer`));
    const elements = `jsonb_array_elements(metersync.elements(${within(item, names)}))`;
    item = `e${nth}.value`;
    return `  cross join lateral ${elements} with ordinality as e${nth} (value, position)`;
  });
  wanted.push(...fields.flatMap((field) => columnOf(field, path, item) ?? []));
  const names = new Set<string>();
  const columns = wanted.slice(0, columnsMax).map((one) => {
    const name = freeName(one.name, (taken) => names.has(taken));
    names.add(name);
    return { ...one, name };
  });
  // Without offset 0, each column would unpack the record again: see docs/decisions.md.
  const query = [
    'select',
    columns.map(({ name, value }) => `  ${value} as ${quoted(name)}`).join(',\n'),
    `from utility.${quoted(tableName(of.name))} r`,
    `  cross join lateral (select r.raw || '{}' as raw offset 0) d`,
    ...unpacked,
    'where r.deleted_at is null',
  ].join('\n');
  return { columns, query };
}

/** Returns the column of a field in the view at a path; undefined if it has none there. */
function columnOf({ path, kinds, zone }: Field, at: string, item: string) {
  const type = columnType(kinds);
  const rest = path.slice(at.length);
  const isThere = `${path}/`.startsWith(`${at}/`) && !rest.split('/').includes(anyStep);
  if (type === null || !isThere || path === '/id') return undefined;
  const names = namesIn(rest);
  const json = within(item, names);
  const text = `(${json} #>> '{}')`;
  const values = {
    boolean: `metersync.boolean_of(${text})`,
    numeric: `metersync.numeric_of(${json})`,
    timestamptz: `metersync.time_of(${text}, ${literal(zone)})`,
    date: `metersync.date_of(${text})`,
    uuid: `metersync.uuid_of(${text})`,
    text,
    jsonb: `nullif(${json}, 'null')`,
  };
  const name = names.map(snakeCase).join('_') || 'value';
  return { name, path, value: values[type], comment: `${path}: ${kinds.join(', ')}.` };
}

/** Returns the narrowest type that holds every kind; null if there is nothing to hold. */
function columnType(kinds: readonly FieldKind[]) {
  const scalars = kinds.filter((kind) => !['object', 'array', 'map'].includes(kind));
  if (scalars.length === 0 && !kinds.includes('array') && !kinds.includes('map')) return null;
  if (scalars.length < kinds.length) return 'jsonb';
  const only = (...allowed: FieldKind[]) => scalars.every((kind) => allowed.includes(kind));
  if (only('boolean')) return 'boolean';
  if (only('number', 'decimal')) return 'numeric';
  if (only('timestamp')) return 'timestamptz';
  if (only('date')) return 'date';
  return only('uuid') ? 'uuid' : 'text';
}

/** Returns the names of the fields on a path: see `stepOf`. */
const namesIn = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .filter((step) => step !== anyStep)
    .map((step) => step.replaceAll('~2', '*').replaceAll('~1', '/').replaceAll('~0', '~'));

const within = (item: string, names: readonly string[]): string =>
  [item, ...names.map((name) => literal(name))].join(' -> ');

/** Converts a field's name to snake_case, of letters and digits of any script. */
function snakeCase(field: string): string {
  const words = field
    .normalize('NFKC')
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1_$2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}]+/gu, '_')
    .replace(/^_+|_+$/g, '');
  return words === '' ? 'field' : words.replace(/^(?=\p{N})/u, '_');
}

/** Returns the name, or the first of name_2, name_3 and so on that is free, in at most 63 bytes. */
function freeName(name: string, isTaken: (name: string) => boolean): string {
  const cut = (bytes: number) =>
    new TextDecoder().decode(Buffer.from(name).subarray(0, bytes), { stream: true });
  let free = cut(63);
  for (let n = 2; isTaken(free); n++) free = `${cut(63 - `_${n}`.length)}_${n}`;
  return free;
}
