import { createHash } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { columnNames, unnested } from '../arrays.ts';
import type { Database, Executor, Transaction } from '../connect.ts';
import { isMistake, isRefusal, sqlMessage } from '../failures.ts';
import { lock } from '../locks.ts';
import { fieldCatalogue, typedColumns, typedViews } from '../schema/metersync.ts';
import {
  type ActualColumn,
  describeWrong,
  readExistingViews,
  readRelations,
  removeWrong,
} from './existing-views.ts';
import type { FieldKind } from './kinds.ts';
import {
  type CataloguedField,
  fixedColumns,
  planViews,
  type TypedColumn,
  type TypedView,
  viewedResources,
} from './plan-views.ts';
import { type ViewShape, viewShape } from './view-shape.ts';

/** A view whose columns could not be widened, because others were built on it. */
export interface BlockedView {
  readonly view: string;
  /** Columns that keep a too narrow type: they are NULL for other values. */
  readonly columns: readonly string[];
  /** The relations built on it. */
  readonly by: readonly string[];
}

export interface RefreshedViews {
  /** Views that were made or changed. */
  readonly made: readonly string[];
  readonly unchanged: number;
  readonly blocked: readonly BlockedView[];
  /** Errors in the tables of typed views or with single views; all others were made. */
  readonly warnings: readonly string[];
}

/**
 * Makes the typed views of schema fields from the catalogue, in one transaction and one process at
 * a time. New columns are added at the end. For a wider type a view is dropped, and made again with
 * its grants. A view that others were built on only gets more columns, and is reported.
 * @throws Error of Postgres: 55P03 when another session uses a view for longer than `lockTimeoutMs`
 */
export async function refreshViews(db: Database, lockTimeoutMs: number): Promise<RefreshedViews> {
  return await db.transaction(async (tx) => {
    await tx.execute(sql`select set_config('lock_timeout', ${String(lockTimeoutMs)}, true)`);
    return await refreshViewsIn(tx);
  });
}

/** Makes the typed views within a transaction that changes the schema. */
export async function refreshViewsIn(tx: Transaction): Promise<RefreshedViews> {
  await lock(tx, 'typedViews', 'inTurn');
  const relations = await readRelations(tx);
  const [fields, { views: existing, wrong }] = [
    await readFields(tx),
    await readExistingViews(tx, relations),
  ];
  const warnings = wrong.map((row) => `${describeWrong(row)}: the row was removed`);
  await removeWrong(tx, wrong);
  const planned = planViews(fields, existing, (name) => relations.get(name)?.isTyped === false);
  const context = { ...(await surroundings(tx)), fields };
  const made: string[] = [];
  const blocked: BlockedView[] = [];
  for (const view of planned) {
    const before = existing.find(({ name }) => name === view.name);
    const actual = relations.get(view.name)?.columns;
    const result = await unlessWrong(tx, (part) =>
      makeView(part, view, before?.definition, actual, context),
    );
    if (result === 'unchanged') continue;
    if (typeof result === 'object' && 'wrong' in result) {
      warnings.push(`fields.${view.name} could not be made: ${result.wrong}`);
      continue;
    }
    made.push(view.name);
    if (result !== 'made') blocked.push(result);
  }
  return { made, unchanged: planned.length - made.length, blocked, warnings };
}

/** Runs work on one view; an error of that view does not stop the others. */
async function unlessWrong<T>(
  tx: Transaction,
  work: (part: Transaction) => Promise<T>,
): Promise<T | { readonly wrong: string }> {
  try {
    return await tx.transaction(work);
  } catch (error) {
    if (!isMistake(error) && !isRefusal(error)) throw error;
    return { wrong: sqlMessage(error) };
  }
}

interface Context {
  readonly zone: string;
  readonly fields: readonly CataloguedField[];
  /** Text of the functions that make views: when it changes, all views are made again. */
  readonly maker: string;
}

async function makeView(
  tx: Transaction,
  view: TypedView,
  definitionBefore: string | undefined,
  actual: readonly ActualColumn[] | undefined,
  { zone, fields, maker }: Context,
): Promise<'unchanged' | 'made' | BlockedView> {
  const resource = viewedResources.find((one) => one.resource === view.resource);
  if (resource === undefined) return 'unchanged';
  const ofResource = new Map(
    fields
      .filter((field) => field.resource === view.resource)
      .map((field) => [field.path, field] as const),
  );
  const shapeOf = (of: TypedView): ViewShape => viewShape(of, resource, ofResource, zone);
  const definition = digest([maker, JSON.stringify(shapeOf(view))]);
  if (actual !== undefined && definition === definitionBefore) return 'unchanged';
  const wider = actual === undefined ? [] : changedColumns(view, resource.key, actual);
  const by = await make(tx, shapeOf(view), wider.length > 0);
  if (by.length > 0) {
    const types = new Map(actual?.map(({ name, type }) => [name, type as TypedColumn['type']]));
    const columns = view.columns.map((column) => ({
      ...column,
      type: types.get(column.name) ?? column.type,
    }));
    await make(tx, shapeOf({ ...view, columns }), false);
  }
  // A blocked view is tried again each time.
  await keepView(tx, view, by.length === 0 ? definition : '');
  return by.length === 0 ? 'made' : { view: `fields.${view.name}`, columns: wider, by };
}

/**
 * Makes a view, `anew` when the existing one has other columns.
 * @returns descriptions of what was built on the existing view and keeps it
 */
async function make(tx: Transaction, shape: ViewShape, anew: boolean): Promise<readonly string[]> {
  const { rows } = await tx.execute<{ by: readonly string[] }>(
    sql`select metersync.make_typed_view(${JSON.stringify(shape)}, ${anew}) as by`,
  );
  return (rows[0]?.by ?? []).map((line) => line.replace(/ depends on .*$/, ''));
}

/** Columns of a view that would change their type or position. */
function changedColumns(view: TypedView, key: string, actual: readonly ActualColumn[]): string[] {
  const fixed = fixedColumns(key, view.path).map((name) => ({ name, type: undefined }));
  return [...fixed, ...view.columns].flatMap(({ name, type }, nth) => {
    const there = actual[nth];
    const same =
      there === undefined || (there.name === name && (type ?? there.type) === there.type);
    return same ? [] : [name];
  });
}

const digest = (texts: readonly string[]): string =>
  createHash('sha256').update(texts.join('\0')).digest('hex');

async function readFields(db: Executor): Promise<CataloguedField[]> {
  const { resource, path } = fieldCatalogue;
  const { rows } = await db.execute<{
    resource: string;
    path: string;
    kinds: FieldKind[];
    collapsed: boolean;
    versions: string[];
  }>(sql`
    select
      ${resource},
      ${path},
      bool_or(${fieldCatalogue.collapsed}) as collapsed,
      array_agg(distinct ${fieldCatalogue.apiVersion}) as versions,
      array_agg(distinct kind) filter (where kind is not null) as kinds
    from ${fieldCatalogue}
      left join lateral unnest(${fieldCatalogue.types}) kind on true
    where ${resource} not like 'events/%'
    group by ${resource}, ${path}
    order by ${resource}, ${path}`);
  return rows.map(({ resource, path, kinds, collapsed, versions }) => ({
    resource,
    path,
    collapsed,
    kinds: kinds ?? [],
    apiVersions: versions,
  }));
}

/** Stores the definition of a view, and its columns. */
async function keepView(db: Executor, view: TypedView, definition: string): Promise<void> {
  const { name, resource, path } = view;
  await db
    .insert(typedViews)
    .values({ name, resource, path, definition })
    .onConflictDoUpdate({
      target: typedViews.name,
      set: { resource, path, definition, madeAt: sql`now()` },
    });
  await db.delete(typedColumns).where(eq(typedColumns.viewName, name));
  await keepColumns(db, view);
}

async function keepColumns(db: Executor, view: TypedView): Promise<void> {
  const { viewName: ofView, position, name, path, type } = typedColumns;
  const columns = unnested(
    'typed',
    [...view.columns.entries()],
    [
      ['position', 'int', ([at]) => at + 1],
      ['name', 'text', ([, column]) => column.name],
      ['path', 'text', ([, column]) => column.path],
      ['type', 'text', ([, column]) => column.type],
    ],
  );
  await db.execute(sql`
    insert into ${typedColumns} (${columnNames([ofView, position, name, path, type])})
    select ${view.name}, position, name, path, type
    from ${columns}`);
}

/** Whether this user may make typed views: then its worker makes them when fields come. */
export async function mayMakeViews(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ may: boolean }>(sql`
    select
      has_function_privilege('metersync.make_typed_view(jsonb, boolean)', 'execute') as may`);
  return rows[0]?.may ?? false;
}

async function surroundings(db: Executor): Promise<Pick<Context, 'zone' | 'maker'>> {
  const { rows } = await db.execute<Pick<Context, 'zone' | 'maker'>>(sql`
    select
      current_setting('TimeZone') as zone,
      string_agg(prosrc, '' order by proname) as maker
    from pg_proc
    where pronamespace = 'metersync'::regnamespace
      and proname in ('make_typed_view', 'within')`);
  if (!rows[0]?.maker) throw new Error('metersync.make_typed_view is not there');
  return rows[0];
}
