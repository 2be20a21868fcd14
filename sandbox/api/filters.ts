import { badRequest } from '../problem.ts';
import { fromText, isDay, toText } from '../time.ts';

/** SQL conditions that grow with the filters asked for; `name` identifies their combination. */
export interface Conditions {
  readonly name: string;
  readonly where: string;
  readonly parameters: readonly unknown[];
}

const dateTypes = ['USAGE_PERIOD', 'BILL_DATE', 'CREATED_DATE', 'UPDATED_DATE'] as const;
type DateType = (typeof dateTypes)[number];

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
interface DateColumns {
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

/** A query string as Fastify parses it: a repeated parameter is an array. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function readId(text: string): string {
  if (!uuid.test(text)) throw badRequest(`"${text.slice(0, 80)}" is not a valid UUID.`);
  return text.toLowerCase();
}

const one = (query: Query, name: string): string | undefined => {
  const value = query[name];
  return typeof value === 'object' ? value.at(-1) : value;
};

export const readText = one;

/** A whole number from 1 to `max`. */
export function readCount(query: Query, name: string, fallback: number, max: number): number {
  const text = one(query, name);
  if (text === undefined) return fallback;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > max) throw badRequest(`${name} must be a whole number from 1 to ${max}.`);
  return value;
}

/** A page number beyond every list. Larger numbers could exceed the number types of Postgres. */
const pageMax = 999_999_999;

/** Reads the number of a page, from 1 on. A page beyond the last is not an error (service.md 7). */
export function readPageNumber(query: Query): number {
  const text = one(query, 'page') ?? '1';
  const value = /^\d+$/.test(text) ? Number(text) : 0;
  if (value < 1) throw badRequest('page must be a whole number from 1 on.');
  return Math.min(value, pageMax);
}

/** Every value of a repeatable parameter, each one of `choices` if any are given. */
export function readTexts(query: Query, name: string, choices?: readonly string[]): string[] {
  const value = query[name] ?? [];
  const texts = typeof value === 'string' ? [value] : [...value];
  const wrong = texts.find((text) => choices !== undefined && !choices.includes(text));
  if (wrong !== undefined) throw badRequest(`${name} must be one of ${choices?.join(', ')}.`);
  return texts;
}

export function readBoolean(query: Query, name: string): boolean {
  const text = one(query, name)?.toLowerCase();
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw badRequest(`${name} must be true or false.`);
}

function readChoice<T extends string>(query: Query, name: string, choices: readonly T[], fallback: T): T {
  const text = one(query, name);
  if (text === undefined || text === '') return fallback;
  const choice = choices.find((candidate) => candidate === text);
  if (choice === undefined) throw badRequest(`${name} must be one of ${choices.join(', ')}.`);
  return choice;
}

/** `YYYY-MM-DD`, or undefined when absent. */
function readDate(query: Query, name: string): string | undefined {
  const text = one(query, name);
  if (text === undefined || text === '') return undefined;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || !isDay(text)) {
    throw badRequest(`${name} must be a date, YYYY-MM-DD.`);
  }
  return text;
}

/** A date or a date-time with Z, an offset or no zone (UTC), as a timestamp with microseconds. */
function readTime(query: Query, name: string): string | undefined {
  const text = one(query, name);
  if (text === undefined || text === '') return undefined;
  const [, time, offset = 'Z'] =
    /^(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)?)(Z|[+ -]\d{2}:?\d{2})?$/i.exec(text) ?? [];
  if (time === undefined) throw badRequest(`${name} must be an ISO 8601 date or date-time.`);
  try {
    const at = toText(fromText(time.replace(/(\.\d{6})\d+$/, '$1')) - offsetMicros(offset));
    // With the offset applied, the year may be one that Postgres does not support.
    fromText(at);
    return at;
  } catch {
    throw badRequest(`${name} is not a time that exists.`);
  }
}

/** A plus sign in a query string arrives as a space. */
function offsetMicros(offset: string): bigint {
  const [, sign, hours = '0', minutes = '0'] = /^([+ -])(\d{2}):?(\d{2})$/.exec(offset) ?? [];
  return BigInt((sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))) * 60_000_000n;
}
