import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../app/temporal/schedule-times.ts';
import { uuid as uuidPattern } from '../contract/ids.ts';

/** Parsers of values that a user types. Their errors say what is wrong; commander adds value and option. */

export function count(text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number of up to nine digits.');
  return Number(text);
}

export function share(text: string): number {
  if (/^(0(\.\d+)?|1(\.0+)?)$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be from 0 to 1, for example 0.2.');
}

export function uuid(text: string): string {
  if (uuidPattern.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be a UUID.');
}

export function issueId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be the number of an issue.');
}

export function wait(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError('It must be a number and s, m, h or d, for example 15m.');
  if (ms <= 3_600_000) return ms;
  throw new InvalidArgumentError('It must be at most 1h.');
}

export function atLeastOne(text: string): number {
  const number = count(text);
  if (number === 0) throw new InvalidArgumentError('It must be 1 or more.');
  return number;
}

/** Matches a day or a time that Postgres can read, too. */
const isoTime = /^(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-](0\d|1[0-5])(:?[0-5]\d)?)?)?$/i;

/** Parses a time, or how long ago it was: `90m`, `24h`, `7d`. */
export function timeOrAgo(text: string): string {
  const agoMs = parseDuration(text);
  if (agoMs !== undefined && agoMs < Date.now()) return new Date(Date.now() - agoMs).toISOString();
  const [, day] = isoTime.exec(text) ?? [];
  if (day !== undefined && isDay(day) && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError(
    'It must be a time such as 2026-05-01T12:00:00Z, or how long ago it was, such as 90m, 24h or 7d.',
  );
}

/** Whether the month has that day: `Date` turns 30 February into 2 March. Postgres has no year 0. */
function isDay(day: string): boolean {
  const at = Date.parse(day);
  return day >= '0001' && !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}
