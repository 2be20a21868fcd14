import { type SQLWrapper, sql } from 'drizzle-orm';

const iso = sql.raw(`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`);

/** A time as ISO text in UTC, with microseconds. */
export const isoTime = (time: SQLWrapper) =>
  sql<string>`to_char(${time} at time zone 'UTC', ${iso})`;

export const daySeconds = 86_400;

/** A range of time, both ends included, as ISO times in UTC. */
export interface TimeRange {
  readonly start: string;
  readonly end: string;
}

/** Seconds of a meter's shortest and longest readings, as its events report them. */
export interface Granularity {
  readonly shortest: number;
  readonly longest: number;
}
