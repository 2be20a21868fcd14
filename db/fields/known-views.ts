import { sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';
import { columnTypes } from './kinds.ts';
import { nameBytesMax } from './names.ts';
import { anyStep, stepsOf } from './paths.ts';
import { fixedColumns, type TypedColumn, type TypedView, viewedResources } from './plan-views.ts';
import { madeBy } from './view-sql.ts';

/** A typed view that was made before, and a digest of what it was made by. */
export interface KnownView extends TypedView {
  readonly definition: string;
}

export interface ActualColumn {
  readonly name: string;
  readonly type: string;
}

/** A relation of schema analytics. */
export interface Relation {
  readonly columns: readonly ActualColumn[];
  /** Whether it is a typed view: its comment says so, which none but the owner of the warehouse can write. */
  readonly isTyped: boolean;
}

/** What the tables of typed views say, less the rows that cannot be true: the writer may write them, and no view. */
export interface KnownViews {
  readonly views: readonly KnownView[];
  readonly wrong: readonly WrongRow[];
}

/** A row that is not believed: a view, or one column of a view. */
export interface WrongRow {
  readonly view: string;
  readonly position: number | null;
  readonly why: string;
}

/** Every relation of schema analytics. */
export async function readRelations(db: Executor): Promise<Map<string, Relation>> {
  const { rows } = await db.execute<{ name: string; columns: ActualColumn[]; typed: boolean }>(sql`
    select c.relname as name, c.relkind = 'v' and coalesce(obj_description(c.oid, 'pg_class'), '') like ${`%${madeBy}`} as typed,
      coalesce((
        select jsonb_agg(jsonb_build_object('name', a.attname, 'type',
          replace(format_type(a.atttypid, null), 'timestamp with time zone', 'timestamptz')) order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), '[]') as columns
    from pg_class c where c.relnamespace = to_regnamespace('analytics')`);
  return new Map(rows.map(({ name, columns, typed }) => [name, { columns, isTyped: typed }]));
}

/** Columns of a view beyond which Postgres may have no room for those that the plan adds. */
const columnsMax = 1_400;

interface Row extends Record<string, unknown> {
  readonly name: string;
  readonly resource: string;
  readonly path: string;
  readonly definition: string;
  readonly columns: readonly (TypedColumn & { readonly position: number })[];
}

export async function readKnownViews(
  db: Executor,
  relations: ReadonlyMap<string, Relation>,
): Promise<KnownViews> {
  const { rows } = await db.execute<Row>(sql`
    select v.name, v.resource, v.path, v.definition, coalesce((
        select jsonb_agg(
          jsonb_build_object('position', c.position, 'name', c.name, 'path', c.path, 'type', c.type) order by c.position)
        from metersync.typed_columns c where c.view_name = v.name), '[]') as columns
    from metersync.typed_views v order by v.made_at, v.name`);
  const views: KnownView[] = [];
  const wrong: WrongRow[] = [];
  for (const { columns, ...view } of rows) {
    const why = wrongView(view, relations.get(view.name));
    if (why !== undefined) {
      wrong.push({ view: view.name, position: null, why });
      continue;
    }
    const believed: TypedColumn[] = [];
    for (const { position, ...column } of columns) {
      const reason = believed.length === columnsMax ? 'it has too many columns' : wrongColumn(view, column);
      if (reason === undefined) believed.push(column);
      else wrong.push({ view: view.name, position, why: reason });
    }
    views.push({ ...view, columns: believed });
  }
  return { views, wrong };
}

/** Removes rows that are not believed. */
export async function removeWrong(db: Executor, wrong: readonly WrongRow[]): Promise<void> {
  for (const { view, position } of wrong) {
    const which = position === null ? sql`true` : sql`position = ${position}`;
    await db.execute(sql`delete from metersync.typed_columns where view_name = ${view} and ${which}`);
    if (position === null) await db.execute(sql`delete from metersync.typed_views where name = ${view}`);
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
  if (relation !== undefined && !relation.isTyped) return 'is no typed view in schema analytics';
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
