import pg from 'pg';
import { anyStep, stepsOf } from './paths.ts';
import {
  type CataloguedField,
  fixedColumns,
  type TypedColumn,
  type TypedView,
} from './plan-views.ts';

const { escapeIdentifier: quoted, escapeLiteral: literal } = pg;

export const qualified = (view: string): string => `fields.${quoted(view)}`;

/** The comment of a typed view contains this text. Only the owner of the warehouse writes it. */
export const madeFrom = 'Made from ops.field_catalogue by metersync views';

/**
 * Returns the statements that make a typed view and its comments. All names and paths come from the
 * service: they are quoted. A record is unpacked once, rather than for each of its columns.
 */
export function viewText(
  view: TypedView,
  fields: ReadonlyMap<string, CataloguedField>,
  zone: string,
): string[] {
  const { item, arrays, isObject } = placeOf(view.path);
  const columns = [
    ...fixedColumns(view.of.key, view.path),
    ...view.columns.map((column) => ({
      name: column.name,
      value: valueIn(column, view, item, zone),
      comment: describe(column.path, fields.get(column.path)),
    })),
  ];
  const name = qualified(view.name);
  return [
    [
      `create or replace view ${name} as`,
      'select',
      columns.map(({ name, value }) => `  ${value} as ${quoted(name)}`).join(',\n'),
      `from utility.${quoted(view.of.table)} r`,
      `  cross join lateral (select r.raw || '{}' as raw offset 0) d`,
      ...arrays.map((array) => `  cross join lateral ${array}`),
      'where r.deleted_at is null',
      ...(isObject ? [`  and jsonb_typeof(${item}) = 'object'`] : []),
    ].join('\n'),
    ...columns.map(
      ({ name: column, comment }) =>
        `comment on column ${name}.${quoted(column)} is ${literal(comment)}`,
    ),
  ];
}

/** Describes a typed view; `definition` is a digest of its statements. */
export const commentOf = ({ path, of }: TypedView, definition: string): string =>
  `${rowsAt(path, of.resource)}, with a column for each field that was ever seen. ${madeFrom} apply (${definition}).`;

function rowsAt(path: string, resource: string): string {
  if (path === '') return `Records of ${resource} that the service has`;
  return path.endsWith(`/${anyStep}`)
    ? `Elements of the arrays at ${path} in records of ${resource}`
    : `The objects at ${path} in records of ${resource}`;
}

/** Says where the rows of a view are: the arrays that it unpacks, and the value of each row. */
function placeOf(path: string) {
  const arrays: string[] = [];
  let item = 'd.raw';
  let names: string[] = [];
  for (const step of stepsOf(path)) {
    if (step !== 'any') {
      names.push(step.field);
      continue;
    }
    const element = `e${arrays.length + 1}`;
    arrays.push(
      `jsonb_array_elements(metersync.elements(${within(item, names)})) with ordinality as ${element} (value, position)`,
    );
    item = `${element}.value`;
    names = [];
  }
  return { arrays, item: within(item, names), isObject: names.length > 0 };
}

const within = (item: string, names: readonly string[]): string =>
  [item, ...names.map(literal)].join(' -> ');

function textWithin(item: string, names: readonly string[]): string {
  const last = names.at(-1);
  return last === undefined
    ? `(${item} #>> '{}')`
    : `(${within(item, names.slice(0, -1))} ->> ${literal(last)})`;
}

function valueIn(column: TypedColumn, view: TypedView, item: string, zone: string): string {
  if (column.path === `/${anyStep}`) {
    const own = view.columns.flatMap(({ path }) => {
      const [first, ...more] = stepsOf(path);
      return typeof first === 'object' && more.length === 0 ? [first.field] : [];
    });
    return `nullif(d.raw - array[${['id', ...own].map(literal).join(', ')}], '{}')`;
  }
  const names = stepsOf(column.path.slice(view.path.length)).map((step) => {
    if (step === 'any') throw new Error(`column ${column.path} is no field of ${view.path}`);
    return step.field;
  });
  const [text, json] = [textWithin(item, names), within(item, names)];
  const values = {
    boolean: `metersync.boolean_of(${text})`,
    numeric: `metersync.numeric_of(${json})`,
    timestamptz: `metersync.time_of(${text}, ${literal(zone)})`,
    date: `metersync.date_of(${text})`,
    uuid: `metersync.uuid_of(${text})`,
    text,
    jsonb: `nullif(${json}, 'null')`,
  };
  return values[column.type];
}

function describe(path: string, field: CataloguedField | undefined): string {
  if (field === undefined) return 'All fields that have no column: the records have too many.';
  const types = field.kinds.length === 0 ? 'nothing but null' : field.kinds.join(', ');
  return `${path}: ${types}; in ${field.apiVersions.join(', ')}.`;
}
