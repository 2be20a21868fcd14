import { and, eq, sql } from 'drizzle-orm';
import type { RowOf } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { typedColumns, typedViews } from '../schema/metersync.ts';
import { columnTypes } from './kinds.ts';
import { nameBytesMax } from './names.ts';
import { anyStep, stepsOf } from './paths.ts';
import { fixedColumns, type TypedColumn, type TypedView, viewedResources } from './plan-views.ts';

/** An existing typed view, and a digest of its shape and maker. */
export interface ExistingView extends TypedView {
  readonly definition: string;
}

export interface ActualColumn {
  readonly name: string;
  readonly type: string;
}

/** A relation of schema fields. */
export interface Relation {
  readonly columns: readonly ActualColumn[];
  /**
   * Whether it is a typed view, by its comment, which only the owner of the warehouse can write.
   */
  readonly isTyped: boolean;
}

/**
 * The rows of the tables of typed views, without wrong ones: the writer may change these tables,
 * but no view.
 */
export interface ExistingViews {
  readonly views: readonly ExistingView[];
  readonly wrong: readonly WrongRow[];
}

/** A row that cannot be true: a view, or one column of a view. */
export interface WrongRow {
  readonly view: string;
  readonly position: number | null;
  readonly why: string;
}

/** Reads every relation of schema fields. */
export async function readRelations(db: Executor): Promise<Map<string, Relation>> {
  const { rows } = await db.execute<{ name: string; columns: ActualColumn[]; typed: boolean }>(sql`
    select
      c.relname as name,
      metersync.is_typed_view(c.oid) as typed,
      coalesce(theirs.columns, '[]') as columns
    from pg_class c
      cross join lateral (
        select jsonb_agg(
          jsonb_build_object('name', a.attname, 'type', ${typeOf}) order by a.attnum
        ) as columns
        from pg_attribute a
        where a.attrelid = c.oid
          and a.attnum > 0
          and not a.attisdropped
      ) theirs
    where c.relnamespace = to_regnamespace('fields')`);
  return new Map(rows.map(({ name, columns, typed }) => [name, { columns, isTyped: typed }]));
}

/** The type of a column `a`, named as in the plan. */
const typeOf = sql`
            replace(format_type(a.atttypid, null), 'timestamp with time zone', 'timestamptz')`;

/** Most columns of a view: beyond it Postgres may have no room for those that the plan adds. */
const columnsMax = 1_400;

interface Row
  extends RowOf<
    | typeof typedViews.name
    | typeof typedViews.resource
    | typeof typedViews.path
    | typeof typedViews.definition
  > {
  readonly [column: string]: unknown;
  readonly columns: readonly (TypedColumn & { readonly position: number })[];
}

export async function readExistingViews(
  db: Executor,
  relations: ReadonlyMap<string, Relation>,
): Promise<ExistingViews> {
  const { rows } = await db.execute<Row>(sql`
    select
      ${typedViews.name},
      ${typedViews.resource},
      ${typedViews.path},
      ${typedViews.definition},
      coalesce(theirs.columns, '[]') as columns
    from ${typedViews}
      cross join lateral (
        select jsonb_agg(
          jsonb_build_object(
            'position', ${typedColumns.position},
            'name', ${typedColumns.name},
            'path', ${typedColumns.path},
            'type', ${typedColumns.type}
          )
          order by ${typedColumns.position}
        ) as columns
        from ${typedColumns}
        where ${typedColumns.viewName} = ${typedViews.name}
      ) theirs
    order by ${typedViews.madeAt}, ${typedViews.name}`);
  const views: ExistingView[] = [];
  const wrong: WrongRow[] = [];
  for (const { columns, ...view } of rows) {
    const why = wrongView(view, relations.get(view.name));
    if (why !== undefined) {
      wrong.push({ view: view.name, position: null, why });
      continue;
    }
    const valid: TypedColumn[] = [];
    for (const { position, ...column } of columns) {
      const reason =
        valid.length === columnsMax ? 'it has too many columns' : wrongColumn(view, column);
      if (reason === undefined) valid.push(column);
      else wrong.push({ view: view.name, position, why: reason });
    }
    views.push({ ...view, columns: valid });
  }
  return { views, wrong };
}

/** Deletes wrong rows. */
export async function removeWrong(db: Executor, wrong: readonly WrongRow[]): Promise<void> {
  for (const { view, position } of wrong) {
    const which = position === null ? undefined : eq(typedColumns.position, position);
    await db.delete(typedColumns).where(and(eq(typedColumns.viewName, view), which));
    if (position === null) await db.delete(typedViews).where(eq(typedViews.name, view));
  }
}

export const describeWrong = ({ view, position, why }: WrongRow): string =>
  position === null
    ? `metersync.typed_views: ${JSON.stringify(view)} ${why}`
    : `metersync.typed_columns: column ${position} of ${JSON.stringify(view)} ${why}`;

const isName = (name: string): boolean =>
  /^[\p{L}\p{N}\p{M}_]+$/u.test(name) && Buffer.byteLength(name) <= nameBytesMax;

function wrongView(
  { name, resource, path }: Pick<Row, 'name' | 'resource' | 'path'>,
  relation: Relation | undefined,
): string | undefined {
  if (!isName(name)) return 'has a name that no typed view has';
  if (!viewedResources.some((viewed) => viewed.resource === resource))
    return 'is of a resource that has no typed views';
  if (path !== '' && !path.startsWith('/')) return 'shows no place of a record';
  if (relation !== undefined && !relation.isTyped) return 'is no typed view in schema fields';
  return undefined;
}

function wrongColumn(
  view: Pick<Row, 'resource' | 'path'>,
  { name, path, type }: TypedColumn,
): string | undefined {
  const key = viewedResources.find(({ resource }) => resource === view.resource)?.key ?? '';
  if (!isName(name) || fixedColumns(key, view.path).includes(name))
    return 'has a name that no column of a field has';
  if (!columnTypes.includes(type)) return 'has a type that no column has';
  if (view.path === '' && path === `/${anyStep}`) return undefined;
  const within = path === view.path ? view.path !== '' : path.startsWith(`${view.path}/`);
  const isField = within && !stepsOf(path.slice(view.path.length)).includes('any');
  return isField ? undefined : 'shows no field of its view';
}
