import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { canonical, type Span } from './interval-key.ts';
import type { IntervalColumns, PlainReadings } from './interval-text.ts';

/**
 * The range of starts in which a write compares rows: the span of its own readings, and the gap
 * between them and the earlier readings of the walk.
 */
export interface Region extends Span {
  /** The start at the region's edge that is not part of it: earlier readings have it. */
  readonly edge: string | null;
  /** Whether the readings overlap the span of the earlier readings. */
  readonly overlaps: boolean;
}

/** The region of a write. `after` is the span of the earlier writes of the same walk. */
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

/** The span that two writes of a walk cover together. */
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

/** Returns the first and the last start of plain readings, without asking Postgres. */
export const spanOfPlain = ({ from, to }: PlainReadings): Span => ({
  first: canonicalPlain(from),
  last: canonicalPlain(to),
});

/** Pads a plain time, which is UTC, to microseconds. */
const canonicalPlain = (time: string): string => {
  const [seconds = '', fraction = ''] = time.replace(/Z$/, '').split('.');
  return `${seconds}.${fraction.padEnd(6, '0')}Z`;
};
