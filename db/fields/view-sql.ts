import pg from 'pg';
import { utility } from '../schema/utility.ts';
import { anyStep, stepsOf } from './paths.ts';
import {
  type CataloguedField,
  fixedColumns,
  type TypedColumn,
  type TypedView,
  type ViewedResource,
} from './plan-views.ts';

const name = pg.escapeIdentifier;
const literal = pg.escapeLiteral;

export const viewName = (view: Pick<TypedView, 'name'>): string => `analytics.${name(view.name)}`;

/** Text with which a view is made; `zone` is that of the service's times that tell none. */
export function viewSelect(
  view: TypedView,
  { table, key, ofCompany }: ViewedResource,
  zone: string,
): string {
  let at = 'd.raw';
  const joins: string[] = [];
  for (const step of stepsOf(view.path)) {
    if (step !== 'any') {
      at = `${at} -> ${literal(step.field)}`;
      continue;
    }
    const alias = `e${joins.length + 1}`;
    joins.push(
      `cross join lateral jsonb_array_elements(metersync.elements(${at})) with ordinality as ${alias} (value, position)`,
    );
    at = `${alias}.value`;
  }
  const positions = joins.map((_, level) => `e${level + 1}.position::integer`);
  const values =
    view.path === ''
      ? [
          'r.id',
          ...(ofCompany ? ['r.company_id'] : []),
          'r.api_version',
          'r.first_synced_at',
          'r.synced_at',
        ]
      : ['r.id', ...(ofCompany ? ['r.company_id'] : []), 'r.api_version', ...positions];
  const fixed = fixedColumns(key, view.path).map(
    (column, nth) => `${values[nth]} as ${name(column)}`,
  );
  const columns = view.columns.map(
    (column) => `${columnValue(column, view, at, zone)} as ${name(column.name)}`,
  );
  const isPart = view.path !== '' && !view.path.endsWith(`/${anyStep}`);
  return [
    `select ${[...fixed, ...columns].join(',\n  ')}`,
    `from ${utility.schemaName}.${table} r`,
    // A record is unpacked once, rather than for each of its columns; not at all where none is
    // asked for.
    `cross join lateral (select r.raw || '{}' as raw offset 0) d`,
    ...joins,
    `where r.deleted_at is null${isPart ? ` and jsonb_typeof(${at}) = 'object'` : ''}`,
  ].join('\n');
}

function columnValue(column: TypedColumn, view: TypedView, from: string, zone: string): string {
  if (view.path === '' && column.path === `/${anyStep}`) {
    const own = view.columns.flatMap(({ path }) => {
      const [first, ...more] = stepsOf(path);
      return typeof first === 'object' && more.length === 0 ? [literal(first.field)] : [];
    });
    return `nullif(d.raw - array['id'${own.map((field) => `, ${field}`).join('')}]::text[], '{}')`;
  }
  const fields = stepsOf(column.path.slice(view.path.length)).map((step) => {
    if (step === 'any') throw new Error(`column ${column.path} is no field of ${view.path}`);
    return literal(step.field);
  });
  const json = [from, ...fields].join(' -> ');
  const text =
    fields.length === 0
      ? `(${from} #>> '{}')`
      : `(${[from, ...fields.slice(0, -1)].join(' -> ')} ->> ${fields.at(-1)})`;
  switch (column.type) {
    case 'boolean':
      return `metersync.boolean_of${text}`;
    case 'numeric':
      return `metersync.numeric_of(${json})`;
    case 'timestamptz':
      return `metersync.time_of(${text}, ${literal(zone)})`;
    case 'date':
      return `metersync.date_of${text}`;
    case 'uuid':
      return `metersync.uuid_of${text}`;
    case 'text':
      return text;
    case 'jsonb':
      return `nullif(${json}, 'null')`;
  }
}

const fixedComments: Readonly<Record<string, string>> = {
  id: 'Id of the record.',
  company_id: 'Company.',
  api_version: 'Version of the API that the record was read from.',
  first_synced_at: 'When metersync first learnt of it.',
  synced_at: 'When the read began that brought what is shown; NULL until it was read.',
  position: 'Place in the array, from 1.',
};

/**
 * Ends the comment of every typed view, by which it is known for one: views that exist have it, so
 * it never changes.
 */
export const madeBy = 'Made from ops.field_catalogue by metersync views refresh.';

/** Statements that say of a view and each of its columns where it is from. */
export function viewComments(
  view: TypedView,
  resource: ViewedResource,
  fields: ReadonlyMap<string, CataloguedField>,
): string[] {
  const on = viewName(view);
  const place = view.path === '' ? '' : ` at ${view.path}`;
  const rows =
    view.path === ''
      ? `Records of ${resource.resource} that the service has`
      : view.path.endsWith(`/${anyStep}`)
        ? `Elements of the arrays${place} in records of ${resource.resource}`
        : `The objects${place} in records of ${resource.resource}`;
  const about = `${rows}, with a column for each field that was ever seen. ${madeBy}`;
  const fixed = fixedColumns(resource.key, view.path).map(
    (column) =>
      [
        column,
        fixedComments[column] ??
          (column === resource.key
            ? 'Id of the record that it is in.'
            : 'Place in the outer array, from 1.'),
      ] as const,
  );
  const own = view.columns.map(
    ({ name: column, path }) => [column, describe(path, fields.get(path))] as const,
  );
  return [
    `comment on view ${on} is ${literal(about)}`,
    ...[...fixed, ...own].map(
      ([column, comment]) => `comment on column ${on}.${name(column)} is ${literal(comment)}`,
    ),
  ];
}

function describe(path: string, field: CataloguedField | undefined): string {
  if (path === `/${anyStep}`) return 'All fields that have no column: the records have too many.';
  if (field === undefined) return `${path}, which is part of a map now.`;
  const types = field.kinds.length === 0 ? 'nothing but null' : field.kinds.join(', ');
  return `${path}: ${types}; in ${field.apiVersions.join(', ')}.`;
}
