import { resources, tableName } from '../resources.ts';
import { fieldsMax } from './field-tree.ts';
import { type ColumnType, columnType, type FieldKind } from './kinds.ts';
import { anyStep, stepOf, stepsOf } from './paths.ts';

/** A field of a resource in the catalogue, over all API versions. */
export interface CataloguedField {
  readonly resource: string;
  readonly path: string;
  readonly kinds: readonly FieldKind[];
  readonly collapsed: boolean;
  readonly apiVersions: readonly string[];
}

/** A column of a typed view. The path `/*` of a record stands for every field without a column. */
export interface TypedColumn {
  readonly name: string;
  readonly path: string;
  readonly type: ColumnType;
}

/** A typed view: the records of a resource, or the objects or elements at `path` in them. */
export interface TypedView {
  readonly name: string;
  readonly of: ViewedResource;
  readonly path: string;
  readonly columns: readonly TypedColumn[];
}

/** A resource that has typed views. */
export interface ViewedResource {
  readonly resource: string;
  readonly table: string;
  /** The column that holds the record's id in views of its parts. */
  readonly key: string;
}

const viewedResources: readonly ViewedResource[] = Object.values(resources).map(
  ({ name, key }) => ({ resource: name, table: tableName(name), key }),
);

/**
 * Maximum number of columns of a view; further fields are in a column of their owner, or in
 * `other_fields`. An object's own fields may exceed it by up to `fieldsMax`: Postgres allows 1,600.
 */
const columnsMax = 1_000;
/** Above this number of columns, nested fields get none, to leave room for a record's own. */
const flattenedMax = columnsMax - fieldsMax;
/** Maximum number of views of a resource; further objects are in columns of their owner. */
const viewsMax = 200;

interface Place {
  readonly path: string;
  /** How many places were seen before it: names go to the field that came first. */
  readonly nth: number;
  kinds: readonly FieldKind[];
  collapsed: boolean;
  /** Whether it is an object without a view: its owner has one column for the whole object. */
  isWhole: boolean;
  /** In the order in which they were first seen. */
  readonly fields: Map<string, Place>;
  any: Place | undefined;
}

/**
 * Plans the views of a catalogue, whose fields come in the order in which they were first seen:
 * names go to earlier fields. `isTaken`: a relation that is not a typed view has the name.
 */
export function planViews(
  fields: readonly CataloguedField[],
  isTaken: (name: string) => boolean,
): TypedView[] {
  const names = new Set<string>();
  return viewedResources.flatMap((of) => {
    const root = placesOf(fields.filter((field) => field.resource === of.resource));
    const shown = new Map<Place, string>();
    const show = (place: Place, wanted: string): void => {
      const name = freeName(wanted, (taken) => names.has(taken) || isTaken(taken));
      names.add(name);
      shown.set(place, name);
    };
    show(root, of.table);
    for (const { place, owner, suffix } of [...partsIn(root, root)].sort(byAge)) {
      const name = shown.get(owner);
      place.isWhole = shown.size >= viewsMax || name === undefined;
      if (!place.isWhole) show(place, `${name}_${suffix}`);
    }
    return [...shown].map(([place, name]) => ({
      name,
      of,
      path: place.path,
      columns: columnsOf(place, fixedColumns(of.key, place.path)),
    }));
  });
}

interface Part {
  readonly place: Place;
  /** The object or element that contains it. */
  readonly owner: Place;
  readonly suffix: string;
}

type Placed = Pick<Part, 'place'>;
const byAge = (a: Placed, b: Placed): number => a.place.nth - b.place.nth;

/** Finds the objects, and elements of arrays, that have views of their own. */
function* partsIn(place: Place, root: Place): Generator<Part> {
  if (place.collapsed && place !== root) return;
  for (const [field, at] of place.fields) yield* partsAt(at, place, snakeCase(field), root);
}

function* partsAt(at: Place, owner: Place, suffix: string, root: Place): Generator<Part> {
  if (at.kinds.includes('object') && !at.collapsed) {
    yield { place: at, owner, suffix };
    yield* partsIn(at, root);
  }
  yield* elementsOf(at, owner, suffix, root);
}

function* elementsOf(at: Place, owner: Place, suffix: string, root: Place): Generator<Part> {
  const { any } = at;
  if (any === undefined || !at.kinds.includes('array')) return;
  if (!any.kinds.includes('object') && !any.kinds.includes('array')) return;
  yield { place: any, owner, suffix };
  yield* partsIn(any, root);
  yield* elementsOf(any, any, 'elements', root);
}

/** A column that a view has in addition to the columns of fields. */
interface FixedColumn {
  readonly name: string;
  readonly value: string;
  readonly comment: string;
}

/** Returns the columns that a view has in addition to the columns of fields. */
export function fixedColumns(key: string, path: string): FixedColumn[] {
  const column = (name: string, comment: string, value = `r.${name}`) => ({ name, value, comment });
  const ofRecord = [
    ...(key === 'company_id' ? [] : [column('company_id', 'Company.')]),
    column('api_version', 'Version of the API that it was read from.'),
  ];
  if (path === '')
    return [
      column('id', 'Id.'),
      ...ofRecord,
      column('first_synced_at', 'First synced at.'),
      column('synced_at', 'When the read of it began.'),
    ];
  const columns = [column(key, 'Id of the record that it is in.', 'r.id'), ...ofRecord];
  const steps = stepsOf(path);
  let arrays = 0;
  for (const [at, step] of steps.entries()) {
    if (step !== 'any') continue;
    arrays += 1;
    const isInner = at === steps.length - 1;
    const owner = steps[at - 1] ?? 'any';
    const level = `${owner === 'any' ? 'element' : snakeCase(owner.field)}_position`;
    const name = freeName(isInner ? 'position' : level, (taken) =>
      columns.some((one) => one.name === taken),
    );
    const comment = `Place in the ${isInner ? '' : 'outer '}array, from 1.`;
    columns.push(column(name, comment, `e${arrays}.position::integer`));
  }
  return columns;
}

function placesOf(fields: readonly CataloguedField[]): Place {
  let count = 0;
  const place = (path: string): Place => ({
    path,
    nth: count++,
    kinds: [],
    collapsed: false,
    isWhole: false,
    any: undefined,
    fields: new Map(),
  });
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

/** Turns objects into maps if all processes and API versions saw too many fields together. */
function collapseMaps(at: Place): void {
  at.collapsed ||= at.fields.size > fieldsMax;
  for (const inner of [...at.fields.values(), ...(at.any === undefined ? [] : [at.any])])
    collapseMaps(inner);
}

/** The type of a field's column; null if it has no column because its own fields have columns. */
const typeOf = ({ kinds, collapsed, isWhole }: Place): ColumnType | null =>
  collapsed || isWhole ? 'jsonb' : columnType(kinds);

/** A field that may get a column; nested fields can do without: their object has a view. */
interface Wanted {
  readonly place: Place;
  readonly name: string;
  readonly isOwn: boolean;
}

function columnsOf(of: Place, fixed: readonly FixedColumn[]): TypedColumn[] {
  const isRecord = of.path === '';
  const names = new Set(fixed.map(({ name }) => name));
  const columns: TypedColumn[] = [];
  const add = (name: string, path: string, type: ColumnType): void => {
    const free = freeName(name, (taken) => names.has(taken));
    names.add(free);
    columns.push({ name: free, path, type });
  };
  const ownType = typeOf(of);
  if (!isRecord && of.path.endsWith(`/${anyStep}`) && ownType !== null)
    add('value', of.path, ownType);
  if (of.collapsed && !isRecord) return columns;
  const own = [...of.fields]
    .filter(([field]) => !isRecord || field !== 'id')
    .map(([field, place]): Wanted => ({ place, name: snakeCase(field), isOwn: true }));
  const inner = own.flatMap(({ place, name }) => [...fieldsWithin(place, name)]);
  let hasOthers = of.collapsed;
  for (const { place, name, isOwn } of [...own, ...inner].sort(byAge)) {
    const type = typeOf(place);
    if (type === null) continue;
    const isFull = columns.length >= (isOwn ? columnsMax : flattenedMax);
    if (isOwn && isFull && isRecord) hasOthers = true;
    else if (isOwn || !(isFull || names.has(freeName(name, () => false))))
      add(name, place.path, type);
  }
  if (isRecord && hasOthers) add('other_fields', `/${anyStep}`, 'jsonb');
  return columns;
}

/** Finds the fields of an object, and of the objects in it. */
function* fieldsWithin(at: Place, name: string): Generator<Wanted> {
  if (at.collapsed) return;
  for (const [field, place] of at.fields) {
    const flat = `${name}_${snakeCase(field)}`;
    yield { place, name: flat, isOwn: false };
    yield* fieldsWithin(place, flat);
  }
}

/** Maximum number of bytes in a name. Postgres cuts off the rest. */
const nameBytesMax = 63;

/**
 * Converts a field's name to an SQL name: snake_case, of letters and digits of any script, at most
 * 63 bytes. It may be an SQL keyword, and then needs quotes, as do letters beyond a to z.
 */
export function snakeCase(field: string): string {
  const words = field
    .normalize('NFKC')
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1_$2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}]+/gu, '_')
    .replace(/^_+|_+$/g, '');
  if (words === '') return 'field';
  return cut(/^\p{N}/u.test(words) ? `_${words}` : words, nameBytesMax);
}

/** Returns the name, or the first of name_2, name_3 and so on that is free. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  let free = cut(name, nameBytesMax);
  for (let n = 2; isTaken(free); n++) free = `${cut(name, nameBytesMax - `_${n}`.length)}_${n}`;
  return free;
}

/** Cuts a text to whole characters within a number of bytes. */
function cut(text: string, bytesMax: number): string {
  let bytes = 0;
  let fitting = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > bytesMax) break;
    fitting += character;
  }
  return fitting;
}
