import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { canonical, type Span } from './interval-key.ts';
import type { IntervalColumns, PlainReadings } from './interval-text.ts';

/** The starts of the readings to compare: those of the readings' own span, and of the gap to the earlier readings. */
export interface Region extends Span {
  /** A start at the edge of the region that belongs to earlier readings. */
  readonly edge: string | null;
  /** Whether the readings lie among the earlier ones. */
  readonly overlaps: boolean;
}

/** The region of a write `after` earlier ones of the same walk. */
export function regionBetween(own: Span, after: Span | undefined): Region {
  if (after === undefined) return { ...own, edge: null, overlaps: false };
  if (own.first > after.last)
    return { first: after.last, last: own.last, edge: after.last, overlaps: false };
  if (own.last < after.first)
    return { first: own.first, last: after.first, edge: after.first, overlaps: false };
  return { ...own, edge: null, overlaps: true };
}

/** Whether a reading of a meter starts in a region. */
export const inRegion = (
  meterId: string,
  { first, last, edge }: Region,
): SQL => sql`meter_id = ${meterId}
        and start_at between ${first}::timestamptz and ${last}::timestamptz
        and start_at is distinct from ${edge}::timestamptz`;

/** What two writes of a walk cover together. */
export const joined = (own: Span, after: Span | undefined): Span => ({
  first: after === undefined || own.first < after.first ? own.first : after.first,
  last: after === undefined || own.last > after.last ? own.last : after.last,
});

/** Returns the first and the last start of readings, as Postgres parses them. */
export async function spanOf(db: Executor, columns: IntervalColumns): Promise<Span> {
  const [span] = await db
    .select({
      first: sql<string>`${canonical(sql`min(at)`)}`,
      last: sql<string>`${canonical(sql`max(at)`)}`,
    })
    .from(sql`unnest(${array(columns.startAt, 'text')}) start
      cross join lateral (select metersync.read_time(start) as at) times`);
  return span as Span;
}

/** The same for plain readings, without asking Postgres. */
export const spanOfPlain = ({ from, to }: PlainReadings): Span => ({
  first: canonicalPlain(from),
  last: canonicalPlain(to),
});

/** Pads a plain time, which is UTC, to microseconds. */
const canonicalPlain = (time: string): string => {
  const [seconds = '', fraction = ''] = time.replace(/Z$/, '').split('.');
  return `${seconds}.${fraction.padEnd(6, '0')}Z`;
};
