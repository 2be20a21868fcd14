import { anyStep, stepsOf } from './paths.ts';
import {
  type CataloguedField,
  fixedColumns,
  type TypedColumn,
  type TypedView,
  type ViewedResource,
} from './plan-views.ts';

/** The input of `metersync.make_typed_view`: names and paths, and no SQL. */
export interface ViewShape {
  readonly name: string;
  /** A table of schema utility. */
  readonly table: string;
  /** Time zone of the service's times without one. */
  readonly zone: string;
  readonly comment: string;
  /** The arrays whose elements are rows: fields that lead from each array to the next. */
  readonly lists: readonly (readonly string[])[];
  /** Fields that lead to the object of a row; empty for the record or element itself. */
  readonly at: readonly string[];
  readonly columns: readonly ShapeColumn[];
}

type ShapeColumn = { readonly name: string; readonly comment: string } & ShapeValue;
type ShapeValue =
  /** A column of the table. */
  | { readonly type: 'record'; readonly source: string }
  /** Position in an array, by its place among `lists`, from 1. */
  | { readonly type: 'position'; readonly level: number }
  /** The value of the field at these steps; `others`: all fields of the record but these. */
  | { readonly type: TypedColumn['type'] | 'others'; readonly steps: readonly string[] };

export function viewShape(
  view: TypedView,
  resource: ViewedResource,
  fields: ReadonlyMap<string, CataloguedField>,
  zone: string,
): ViewShape {
  const lists: string[][] = [];
  let at: string[] = [];
  for (const step of stepsOf(view.path)) {
    if (step !== 'any') at.push(step.field);
    else {
      lists.push(at);
      at = [];
    }
  }
  return {
    name: view.name,
    table: resource.table,
    zone,
    lists,
    at,
    comment: describeView(view, resource),
    columns: [
      ...fixedShapes(view, resource, lists.length),
      ...view.columns.map((column) => ({
        name: column.name,
        comment: describe(column.path, fields.get(column.path)),
        ...valueShape(column, view),
      })),
    ],
  };
}

function fixedShapes(
  { path }: TypedView,
  { key, ofCompany }: ViewedResource,
  lists: number,
): ShapeColumn[] {
  const record = (source: string): ShapeValue => ({ type: 'record', source });
  const values = [
    ...['id', ...(ofCompany ? ['company_id'] : []), 'api_version'].map(record),
    ...(path === '' ? ['first_synced_at', 'synced_at'].map(record) : []),
    ...Array.from({ length: lists }, (_, n): ShapeValue => ({ type: 'position', level: n + 1 })),
  ];
  const names = fixedColumns(key, path);
  return values.map((value, nth) => {
    const name = names[nth] ?? '';
    const comment =
      fixedComments[name] ??
      (name === key ? 'Id of the record that it is in.' : 'Place in the outer array, from 1.');
    return { name, comment, ...value };
  });
}

function valueShape(column: TypedColumn, view: TypedView): ShapeValue {
  if (view.path === '' && column.path === `/${anyStep}`) {
    const own = view.columns.flatMap(({ path }) => {
      const [first, ...more] = stepsOf(path);
      return typeof first === 'object' && more.length === 0 ? [first.field] : [];
    });
    return { type: 'others', steps: ['id', ...own] };
  }
  const steps = stepsOf(column.path.slice(view.path.length)).map((step) => {
    if (step === 'any') throw new Error(`column ${column.path} is no field of ${view.path}`);
    return step.field;
  });
  return { type: column.type, steps };
}

const fixedComments: Readonly<Record<string, string>> = {
  id: 'Id.',
  company_id: 'Company.',
  api_version: 'Version of the API that it was read from.',
  first_synced_at: 'First synced at.',
  synced_at: 'When the read of it began.',
  position: 'Place in the array, from 1.',
};

function describeView({ path }: TypedView, { resource }: ViewedResource): string {
  const rows =
    path === ''
      ? `Records of ${resource} that the service has`
      : path.endsWith(`/${anyStep}`)
        ? `Elements of the arrays at ${path} in records of ${resource}`
        : `The objects at ${path} in records of ${resource}`;
  return `${rows}, with a column for each field that was ever seen.`;
}

function describe(path: string, field: CataloguedField | undefined): string {
  if (path === `/${anyStep}`) return 'All fields that have no column: the records have too many.';
  if (field === undefined) return `${path}, which is part of a map now.`;
  const types = field.kinds.length === 0 ? 'nothing but null' : field.kinds.join(', ');
  return `${path}: ${types}; in ${field.apiVersions.join(', ')}.`;
}
