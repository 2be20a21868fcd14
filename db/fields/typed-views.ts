import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { serverWaits } from '../../contract/retry-policy.ts';
import {
  type Database,
  type Executor,
  lock,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { dependentsIn, isMistake, isRefusal, sqlMessage } from '../connection/failures.ts';
import { migrations } from '../migrate/migrations-table.ts';
import { roles } from '../migrate/roles.ts';
import { fieldCatalogue } from '../schema/metersync.ts';
import { type CataloguedField, fixedColumns, planViews, type TypedView } from './plan-views.ts';
import { commentOf, madeFrom, qualified, viewText } from './view-text.ts';

/** A field of the catalogue by its resource and path. */
export interface FieldName {
  readonly resource: string;
  readonly path: string;
}

/** What has to run so that a typed view shows all fields of the catalogue. */
interface ViewChange {
  readonly view: string;
  readonly statements: readonly string[];
  /** Fields that have no column yet, or a column that does not hold all of their values. */
  readonly fields: readonly FieldName[];
}

/** A view that could not be changed. */
export interface BlockedView {
  readonly view: string;
  /** What depends on it, as Postgres describes it; empty if something else is wrong. */
  readonly by: readonly string[];
  readonly error: string;
}

/** What applying the typed views did. */
export interface AppliedTypedViews {
  readonly applied: readonly string[];
  readonly blocked: readonly BlockedView[];
}

/** Whether a relation `c` is a typed view, by its comment, which only its owner can write. */
export const isTypedView = sql.raw(
  `(c.relkind = 'v' and coalesce(obj_description(c.oid, 'pg_class'), '') like '%${madeFrom} %')`,
);

/**
 * Applies the typed views of schema fields in a transaction of its own.
 * @throws Error of Postgres: 55P03 when another session uses a view, 42501 when the login does not
 * own the views
 */
export async function applyTypedViews(db: Database): Promise<AppliedTypedViews> {
  if ((await planChanges(db)).length === 0) return { applied: [], blocked: [] };
  return await withTransaction(db, async (tx) => {
    await tx.execute(
      sql`select set_config('lock_timeout', ${String(serverWaits.typedViewsLockMs)}, true)`,
    );
    return await applyTypedViewsIn(tx);
  });
}

/**
 * Applies the typed views within a transaction that changes the schema. A view with dependents can
 * get further columns; if its columns would have to change, it stays and is reported.
 */
export async function applyTypedViewsIn(tx: Transaction): Promise<AppliedTypedViews> {
  await lock(tx, migrations);
  const applied: string[] = [];
  const blocked: BlockedView[] = [];
  for (const { view, statements } of await planChanges(tx)) {
    try {
      await tx.transaction((part) => part.execute(sql.raw(statements.join(';\n'))));
      applied.push(view);
    } catch (error) {
      const by = dependentsIn(error)?.map((line) => line.replace(/ depends on .*$/, ''));
      if (by === undefined && !isMistake(error) && !isRefusal(error)) throw error;
      blocked.push({ view, by: by ?? [], error: sqlMessage(error) });
    }
  }
  return { applied, blocked };
}

/** Returns the statements that would apply the typed views. */
export async function typedViewsSql(db: Executor): Promise<string[]> {
  return (await planChanges(db)).flatMap(({ statements }) => statements);
}

/** Lists the fields that no typed view shows with all of their values. */
export async function fieldsWithoutColumn(db: Executor): Promise<FieldName[]> {
  const all = (await planChanges(db)).flatMap(({ fields }) => fields);
  return [...new Map(all.map((field) => [JSON.stringify(field), field])).values()];
}

interface Relation extends Record<string, unknown> {
  readonly name: string;
  readonly isTyped: boolean;
  readonly comment: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly grants: readonly string[];
}

/** Returns the required views, the catalogue's fields and the schema's existing relations. */
export async function plannedViews(db: Executor) {
  const fields = await readFields(db);
  const existing = await readRelations(db);
  const relations = new Map(existing.map((relation) => [relation.name, relation]));
  const isTaken = (name: string) => relations.get(name)?.isTyped === false;
  return { fields, relations, planned: planViews(fields, isTaken) };
}

/** Compares the views that the catalogue requires with the existing views. */
async function planChanges(db: Executor): Promise<ViewChange[]> {
  const { fields, relations, planned } = await plannedViews(db);
  const { zone, readers } = await readSession(db);
  const changes: ViewChange[] = [];
  for (const [name, { isTyped }] of relations)
    if (isTyped && !planned.some((view) => view.name === name))
      changes.push({
        view: qualified(name),
        statements: [`drop view ${qualified(name)}`],
        fields: [],
      });
  for (const view of planned) {
    const { resource } = view.of;
    const own = fields.filter((field) => field.resource === resource);
    const described = new Map(own.map((field) => [field.path, field] as const));
    const change = changeOf(view, relations.get(view.name), described, zone, readers);
    if (change !== undefined) changes.push(change);
  }
  return changes;
}

function changeOf(
  planned: TypedView,
  existing: Relation | undefined,
  described: ReadonlyMap<string, CataloguedField>,
  zone: string,
  readers: readonly string[],
): ViewChange | undefined {
  const actual = existing?.columns ?? [];
  const view = { ...planned, columns: inPlace(planned.columns, actual) };
  const text = viewText(view, described, zone);
  const comment = commentOf(view, digest(text));
  if (existing?.comment === comment) return undefined;
  const typeOf = new Map(actual.map(({ name, type }) => [name, type]));
  const name = qualified(view.name);
  const wanted = [
    ...fixedColumns(view.of.key, view.path).map(({ name }) => ({ name, type: typeOf.get(name) })),
    ...view.columns,
  ];
  const fits = actual.every(
    (column, nth) => column.name === wanted[nth]?.name && column.type === wanted[nth]?.type,
  );
  return {
    view: name,
    statements: [
      ...(fits ? [] : [`drop view ${name}`]),
      ...text,
      `comment on view ${name} is ${pg.escapeLiteral(comment)}`,
      ...readers.map((role) => `grant select on ${name} to ${role}`),
      ...(fits ? [] : grantsFor(wanted, existing?.grants ?? [])),
    ],
    fields: view.columns
      .filter(({ name, type }) => typeOf.get(name) !== type)
      .map(({ path }) => ({ resource: view.of.resource, path })),
  };
}

/** Selects the grants that a view with these columns can have, not grants on removed columns. */
function grantsFor(
  columns: readonly { readonly name: string }[],
  grants: readonly string[],
): string[] {
  const names = new Set(columns.map(({ name }) => name));
  return grants.filter((grant) => {
    // Names of columns are words; keywords and letters beyond a to z are in quotes.
    const [, column] = /^grant [A-Z]+ \("?([^")]+)"?\) on /.exec(grant) ?? [];
    return column === undefined || names.has(column);
  });
}

/** Keeps columns at their places, so that a view with dependents can be replaced. */
function inPlace(columns: TypedView['columns'], actual: Relation['columns']): TypedView['columns'] {
  const place = new Map(actual.map(({ name }, nth) => [name, nth]));
  const placeOf = (name: string): number => place.get(name) ?? Number.MAX_SAFE_INTEGER;
  return columns.toSorted((a, b) => placeOf(a.name) - placeOf(b.name));
}

const digest = (texts: readonly string[]): string =>
  createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 16);

/** Reads every relation of schema fields. */
async function readRelations(db: Executor): Promise<Relation[]> {
  const { rows } = await db.execute<Relation>(sql`
    select
      c.relname as name,
      ${isTypedView} as "isTyped",
      coalesce(obj_description(c.oid, 'pg_class'), '') as comment,
      array(select metersync.grants_on(c.oid::regclass::text)) as grants,
      coalesce(theirs.columns, '[]') as columns
    from pg_class c
      cross join lateral (
        select jsonb_agg(
          jsonb_build_object(
            'name', a.attname,
            'type', replace(
              format_type(a.atttypid, null), 'timestamp with time zone', 'timestamptz'
            )
          ) order by a.attnum
        ) as columns
        from pg_attribute a
        where a.attrelid = c.oid
          and a.attnum > 0
          and not a.attisdropped
      ) theirs
    where c.relnamespace = to_regnamespace('fields')
      and c.relkind in ('r', 'p', 'v', 'm', 'f')
    order by c.relname`);
  return rows;
}

/** Reads the time zone for the service's times, and the roles that read all views. */
async function readSession(db: Executor): Promise<{ zone: string; readers: readonly string[] }> {
  const { rows } = await db.execute<{ zone: string; readers: string[] }>(sql`
    select
      current_setting('TimeZone') as zone,
      array(
        select rolname::text
        from pg_roles
        where rolname in (${roles.analyst}, ${roles.writer})
        order by rolname
      ) as readers`);
  return rows[0] ?? { zone: 'UTC', readers: [] };
}

/** Reads the fields of records in all API versions, in the order in which they were first seen. */
async function readFields(db: Executor): Promise<CataloguedField[]> {
  const { resource, path } = fieldCatalogue;
  const { rows } = await db.execute<CataloguedField & Record<string, unknown>>(sql`
    select
      ${resource},
      ${path},
      bool_or(${fieldCatalogue.collapsed}) as collapsed,
      array_agg(distinct ${fieldCatalogue.apiVersion}) as "apiVersions",
      coalesce(array_agg(distinct kind) filter (where kind is not null), '{}') as kinds
    from ${fieldCatalogue}
      left join lateral unnest(${fieldCatalogue.types}) kind on true
    group by ${resource}, ${path}
    order by min(${fieldCatalogue.firstSeenAt}), ${path} collate "C"`);
  return rows;
}
