import { resources, tableName } from '../resources.ts';
import { fieldsMax } from './field-tree.ts';
import { type ColumnType, columnType, type FieldKind } from './kinds.ts';
import { freeName, snakeCase } from './names.ts';
import { anyStep, stepOf, stepsOf } from './paths.ts';

/** A field of a resource in the catalogue, over all API versions. */
export interface CataloguedField {
  readonly resource: string;
  readonly path: string;
  readonly kinds: readonly FieldKind[];
  readonly collapsed: boolean;
  readonly apiVersions: readonly string[];
}

/**
 * A column of a typed view: the value of the field at `path`. Path `/*` of a record is every field
 * without a column.
 */
export interface TypedColumn {
  readonly name: string;
  readonly path: string;
  readonly type: ColumnType;
}

/** A typed view: the records of a resource, or the objects or elements at `path` in them. */
export interface TypedView {
  readonly name: string;
  readonly resource: string;
  readonly path: string;
  /** In the order in which they came: names and positions never change. */
  readonly columns: readonly TypedColumn[];
}

/** A resource that has typed views. */
export interface ViewedResource {
  readonly resource: string;
  readonly table: string;
  /** The column that holds the record's id in views of its parts. */
  readonly key: string;
  readonly ofCompany: boolean;
}

export const viewedResources: readonly ViewedResource[] = Object.values(resources).map(
  ({ name, table, key }) => ({
    resource: name,
    table: tableName(name),
    key,
    ofCompany: table.companyId !== undefined,
  }),
);

/**
 * Most columns of a view; further fields stand in a column of their owner, or in `other_fields`.
 * Postgres has room for 1,600, of which an object's own fields may take `fieldsMax` more.
 */
const columnsMax = 1_000;
/** Most views of a resource: further objects stand in columns of their owner. */
const viewsMax = 200;

interface Place {
  readonly path: string;
  kinds: readonly FieldKind[];
  collapsed: boolean;
  /** Whether it is an object that gets no view: its owner has a column for all of it. */
  isWhole: boolean;
  readonly fields: Map<string, Place>;
  any: Place | undefined;
}

/**
 * Plans the views of a catalogue. Existing views keep their names and columns; columns only widen
 * and increase. `isTaken` tests names of relations that are not typed views.
 */
export function planViews(
  fields: readonly CataloguedField[],
  existing: readonly TypedView[],
  isTaken: (name: string) => boolean,
): TypedView[] {
  const names = new Set(existing.map(({ name }) => name));
  const nameOf = (resource: string, path: string, wanted: string): string => {
    const before = existing.find((view) => view.resource === resource && view.path === path);
    const name = before?.name ?? freeName(wanted, (taken) => names.has(taken) || isTaken(taken));
    names.add(name);
    return name;
  };
  return viewedResources.flatMap(({ resource, table, key }) => {
    const root = placesOf(fields.filter((field) => field.resource === resource));
    const before = existing.filter((view) => view.resource === resource);
    const shown: { readonly name: string; readonly place: Place }[] = [];
    const add = (place: Place, wanted: string): void => {
      place.isWhole = shown.length >= viewsMax && !before.some(({ path }) => path === place.path);
      if (place.isWhole) return;
      const name = nameOf(resource, place.path, wanted);
      shown.push({ name, place });
      if (place.collapsed && place !== root) return;
      for (const [field, at] of sorted(place.fields)) addParts(at, `${name}_${snakeCase(field)}`);
    };
    const addParts = (place: Place, wanted: string): void => {
      if (place.kinds.includes('object') && !place.collapsed) add(place, wanted);
      const { any } = place;
      if (any === undefined || !place.kinds.includes('array')) return;
      if (!any.kinds.includes('object') && !any.kinds.includes('array')) return;
      add(any, wanted);
      if (any.kinds.includes('array')) addParts({ ...any, kinds: ['array'] }, `${wanted}_elements`);
    };
    add(root, table);
    const views = shown.map(({ name, place }): TypedView => {
      const { path } = place;
      const columns = before.find((view) => view.path === path)?.columns ?? [];
      return {
        name,
        resource,
        path,
        columns: columnsOf(place, root, fixedColumns(key, path), columns),
      };
    });
    const kept = before.filter((view) => !views.some((other) => other.path === view.path));
    return [...views, ...kept.map((view) => ({ ...view, columns: widened(view.columns, root) }))];
  });
}

/** Names the columns that a view has beside those of fields. */
export function fixedColumns(key: string, path: string): string[] {
  const company = key === 'company_id' ? [] : ['company_id'];
  if (path === '') return ['id', ...company, 'api_version', 'first_synced_at', 'synced_at'];
  const columns = [key, ...company, 'api_version'];
  const steps = stepsOf(path);
  for (const [at, step] of steps.entries()) {
    if (step !== 'any') continue;
    const owner = steps[at - 1] ?? 'any';
    const level = `${owner === 'any' ? 'element' : snakeCase(owner.field)}_position`;
    columns.push(
      freeName(at === steps.length - 1 ? 'position' : level, (name) => columns.includes(name)),
    );
  }
  return columns;
}

function placesOf(fields: readonly CataloguedField[]): Place {
  const root = place('');
  for (const field of fields) {
    let at = root;
    for (const step of stepsOf(field.path)) {
      if (step === 'any') {
        at.any ??= place(`${at.path}/${anyStep}`);
        at = at.any;
      } else {
        const next = at.fields.get(step.field) ?? place(`${at.path}/${stepOf(step.field)}`);
        at.fields.set(step.field, next);
        at = next;
      }
    }
    at.kinds = field.kinds;
    at.collapsed = field.collapsed;
  }
  collapseMaps(root);
  return root;
}

/** Makes maps of objects with too many fields over all processes and API versions together. */
function collapseMaps(at: Place): void {
  at.collapsed ||= at.fields.size > fieldsMax;
  for (const inner of [...at.fields.values(), ...(at.any === undefined ? [] : [at.any])])
    collapseMaps(inner);
}

const place = (path: string): Place => ({
  path,
  kinds: [],
  collapsed: false,
  isWhole: false,
  any: undefined,
  fields: new Map(),
});

/** Sorts fields by name, so that the order of new columns does not depend on the process. */
const sorted = (fields: ReadonlyMap<string, Place>): [string, Place][] =>
  [...fields].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));

/** The type of a field's column; null if it has none because its own fields have columns. */
const typeOf = ({ kinds, collapsed, isWhole }: Place): ColumnType | null =>
  collapsed || isWhole ? 'jsonb' : columnType(kinds);

function columnsOf(
  of: Place,
  root: Place,
  fixed: readonly string[],
  before: readonly TypedColumn[],
): readonly TypedColumn[] {
  const columns = [...widened(before, root)];
  const paths = new Set(columns.map(({ path }) => path));
  const isUsed = (name: string) =>
    fixed.includes(name) || columns.some((column) => column.name === name);
  const add = (path: string, name: string, type: ColumnType | null): void => {
    if (type === null || paths.has(path)) return;
    paths.add(path);
    columns.push({ name: freeName(name, isUsed), path, type });
  };
  const isRecord = of === root;
  if (!isRecord && of.path.endsWith(`/${anyStep}`)) add(of.path, 'value', typeOf(of));
  if (of.collapsed && !isRecord) return columns;
  const own = sorted(of.fields).filter(([field]) => !isRecord || field !== 'id');
  for (const [field, at] of own) {
    if (!isRecord || columns.length < columnsMax) add(at.path, snakeCase(field), typeOf(at));
  }
  const hasColumn = ([, at]: [string, Place]): boolean => typeOf(at) === null || paths.has(at.path);
  if (isRecord && (of.collapsed || !own.every(hasColumn)))
    add(`/${anyStep}`, 'other_fields', 'jsonb');
  const flatten = (at: Place, name: string): void => {
    for (const [field, inner] of sorted(at.fields)) {
      const flat = `${name}_${snakeCase(field)}`;
      if (columns.length < columnsMax && !isUsed(freeName(flat, () => false)))
        add(inner.path, flat, typeOf(inner));
      if (!inner.collapsed) flatten(inner, flat);
    }
  };
  for (const [field, at] of own) if (!at.collapsed) flatten(at, snakeCase(field));
  return columns;
}

/** Widens existing columns to hold values that came since. */
function widened(columns: readonly TypedColumn[], root: Place): readonly TypedColumn[] {
  return columns.map((column) => {
    const at = find(root, column.path);
    const type = at === 'in a map' ? 'jsonb' : at === undefined ? null : typeOf(at);
    return type === null ? column : { ...column, type: widerOf(column.type, type) };
  });
}

function find(root: Place, path: string): Place | 'in a map' | undefined {
  let at: Place | undefined = root;
  for (const step of stepsOf(path)) {
    if (at !== root && at.collapsed) return 'in a map';
    at = step === 'any' ? at.any : at.fields.get(step.field);
    if (at === undefined) return undefined;
  }
  return at;
}

const widerOf = (a: ColumnType, b: ColumnType): ColumnType =>
  a === b ? a : a === 'jsonb' || b === 'jsonb' ? 'jsonb' : 'text';
