import { type Query, readBoolean, readChoice, readDate, readTexts, readTime } from './query.ts';

/** SQL conditions that grow with the filters asked for; `name` identifies their combination. */
export interface Conditions {
  readonly name: string;
  readonly where: string;
  readonly parameters: readonly unknown[];
}

const dateTypes = ['USAGE_PERIOD', 'BILL_DATE', 'CREATED_DATE', 'UPDATED_DATE'] as const;
export type DateType = (typeof dateTypes)[number];

function alsoWhere(
  conditions: Conditions,
  name: string,
  where: (parameter: string) => string,
  value: unknown,
): Conditions {
  return {
    name: `${conditions.name} ${name}`,
    where: `${conditions.where} and ${where(`$${conditions.parameters.length + 1}`)}`,
    parameters: [...conditions.parameters, value],
  };
}

/** Columns that a date filter compares: `startDate` with the end of a period, `endDate` with its start. */
export interface DateColumns {
  readonly alias: string;
  readonly periodStart: string;
  readonly periodEnd: string;
}

/**
 * The filters `startDate` and `endDate`, each optional and inclusive, on the dates that `dateType` names. A
 * usage period matches if one of its days does. Times are compared with 00:00 UTC of the dates.
 */
export function dateFilters(
  conditions: Conditions,
  query: Query,
  columns: DateColumns,
  defaultType: DateType,
): Conditions {
  const dateType = readChoice(query, 'dateType', dateTypes, defaultType);
  const startDate = readDate(query, 'startDate');
  const endDate = readDate(query, 'endDate');
  const { from, to, cast } = comparedColumns(dateType, columns);
  let result = conditions;
  if (startDate !== undefined) {
    result = alsoWhere(result, `from ${dateType}`, (value) => `${to} >= ${value}::${cast}`, startDate);
  }
  if (endDate !== undefined) {
    result = alsoWhere(result, `to ${dateType}`, (value) => `${from} <= ${value}::${cast}`, endDate);
  }
  return result;
}

function comparedColumns(dateType: DateType, { alias, periodStart, periodEnd }: DateColumns) {
  const same = (column: string, cast: string) => ({ from: column, to: column, cast });
  if (dateType === 'USAGE_PERIOD') {
    return { from: `${alias}.${periodStart}`, to: `${alias}.${periodEnd}`, cast: 'date' };
  }
  if (dateType === 'BILL_DATE') return same(`${alias}.bill_date`, 'date');
  return same(`${alias}.${dateType === 'CREATED_DATE' ? 'created' : 'updated'}`, 'timestamp');
}

const datasourceTypes = [
  'ELECTRICITY',
  'GAS',
  'WATER',
  'DISTRICT',
  'WASTE',
  'FUEL',
  'MISC',
  'REFRIGERANT',
  'SOLAR',
  'TELECOM',
] as const;

/** The filters `datasourceType` (repeatable) and `identifier`; `holds` makes the condition for the meters. */
export function meterFilters(
  conditions: Conditions,
  query: Query,
  holds: (meters: string) => string,
): Conditions {
  const types = readTexts(query, 'datasourceType', datasourceTypes);
  const [identifier] = readTexts(query, 'identifier');
  let result = conditions;
  if (types.length > 0) {
    const meters = (value: string) =>
      `select f.id from sandbox.meters f where f.datasource_type = any (${value}::text[])`;
    result = alsoWhere(result, 'type', (value) => holds(meters(value)), types);
  }
  if (identifier !== undefined && identifier !== '') {
    result = alsoWhere(result, 'identifier', (value) => holds(metersIdentifiedBy(value)), identifier);
  }
  return result;
}

/** SQL of an identifier as it is compared: upper case, without separators and leading zeros. */
const normal = (text: string) => `upper(ltrim(translate(${text}, '- _,/', ''), '0'))`;

const metersIdentifiedBy = (value: string) => `select f.id from sandbox.meters f
  where exists (select from jsonb_array_elements(('{'||f.members||'}')::jsonb->'identifiers') one
    where ${normal("one->>'value'")} = ${normal(`${value}::text`)})`;

/** The filters `status`, `connectionOwnerEmail` (exact) and `sites` (repeatable) of connections. */
export function connectionFilters(conditions: Conditions, query: Query): Conditions {
  const facts = `('{'||k.members||'}')::jsonb`;
  const [status] = readTexts(query, 'status');
  const [owner] = readTexts(query, 'connectionOwnerEmail');
  const sites = readTexts(query, 'sites');
  let result = conditions;
  if (status !== undefined) result = alsoWhere(result, 'status', (value) => `k.status = ${value}`, status);
  if (owner !== undefined) {
    result = alsoWhere(result, 'owner', (value) => `${facts}->>'workflowOwnerEmail' = ${value}`, owner);
  }
  if (sites.length > 0) {
    const served = (
      value: string,
    ) => `exists (select from jsonb_array_elements(${facts}->'sitesRelations') one
      where one->'site'->>'id' = any (${value}::text[]))`;
    result = alsoWhere(result, 'sites', served, sites);
  }
  return result;
}

/** Leaves out deleted documents. `isDeleted=true` includes them along with the others. */
export function deletedFilter(conditions: Conditions, query: Query): Conditions {
  if (readBoolean(query, 'isDeleted')) return { ...conditions, name: `${conditions.name} deleted` };
  return {
    ...conditions,
    name: `${conditions.name} kept`,
    where: `${conditions.where} and d.deleted_at is null`,
  };
}

/** Intervals completely in the range, from `startDate` or later to `endDate` or earlier. */
export function intervalFilters(conditions: Conditions, query: Query): Conditions {
  const start = readTime(query, 'startDate');
  const end = readTime(query, 'endDate');
  let result = conditions;
  if (start !== undefined) {
    result = alsoWhere(result, 'from', (value) => `i.start_at >= ${value}::timestamp`, start);
  }
  if (end !== undefined) {
    const within = (value: string) =>
      `i.start_at < ${value}::timestamp and i.start_at + i.seconds * interval '1 second' <= ${value}::timestamp`;
    result = alsoWhere(result, 'to', within, end);
  }
  return result;
}
