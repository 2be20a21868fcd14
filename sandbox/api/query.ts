import { badRequest } from '../problem.ts';
import { fromText, isDay, toText } from '../timestamps.ts';

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

export function readChoice<T extends string>(
  query: Query,
  name: string,
  choices: readonly T[],
  fallback: T,
): T {
  const text = one(query, name);
  if (text === undefined || text === '') return fallback;
  const choice = choices.find((candidate) => candidate === text);
  if (choice === undefined) throw badRequest(`${name} must be one of ${choices.join(', ')}.`);
  return choice;
}

/** `YYYY-MM-DD`, or undefined when absent. */
export function readDate(query: Query, name: string): string | undefined {
  const text = one(query, name);
  if (text === undefined || text === '') return undefined;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || !isDay(text)) {
    throw badRequest(`${name} must be a date, YYYY-MM-DD.`);
  }
  return text;
}

/** A date or a date-time with Z, an offset or no zone (UTC), as a timestamp with microseconds. */
export function readTime(query: Query, name: string): string | undefined {
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
