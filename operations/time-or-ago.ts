import { parseDuration } from '../app/temporal/schedule-times.ts';

/** Matches a day or a time that Postgres can read, too. */
const isoTime = /^(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-](0\d|1[0-5])(:?[0-5]\d)?)?)?$/i;

export const timeOrAgoHasTo =
  'It must be a time such as 2026-05-01T12:00:00Z, or how long ago it was, such as 90m, 24h or 7d.';

/** Reads a time, or how long ago it was: `90m`, `24h`, `7d`. Returns undefined for anything else. */
export function readTimeOrAgo(text: string, now: number): string | undefined {
  const agoMs = parseDuration(text);
  if (agoMs !== undefined && agoMs < now) return new Date(now - agoMs).toISOString();
  const [, day] = isoTime.exec(text) ?? [];
  return day !== undefined && isDay(day) && !Number.isNaN(Date.parse(text)) ? text : undefined;
}

/** Whether the month has that day: `Date` turns 30 February into 2 March. Postgres has no year 0. */
function isDay(day: string): boolean {
  const at = Date.parse(day);
  return day >= '0001' && !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}
