import { type SQL, sql } from 'drizzle-orm';
import type { Executor, Warehouse } from '../connect.ts';
import { isRefusal } from '../failures.ts';
import { intervals } from '../schema/utility.ts';
import { splitOnRefusal } from '../split-on-refusal.ts';
import { type IntervalColumns, readingsAt, readReadings } from './interval-text.ts';
import { anyReadings, keyAsText } from './intervals.ts';

/** Readings of a meter in the warehouse that start in a span. */
export interface HeldReadings {
  readonly count: number;
  /** When the last of them ends, in ISO; null without any. */
  readonly end: string | null;
  /** The longest, in seconds. */
  readonly longest: number;
}

const endOf = sql`start_at + make_interval(secs => granularity_seconds)`;

/**
 * Counts a meter's readings that overlap the time from the first listed start until the last listed
 * one has ended, and start `since` at the earliest. None if a start, as the service sent it, is no
 * time.
 */
export async function heldReadings(
  db: Executor,
  meterId: string,
  { first, last }: { readonly first: string; readonly last: string },
  since = '-infinity',
): Promise<HeldReadings> {
  const none = { count: 0, end: null, longest: 0 };
  const to = sql`metersync.read_time(${last})`;
  const overlapping = (until: SQL): SQL => sql`meter_id = ${meterId}
          and start_at between ${since}::timestamptz and ${until}
          and ${endOf} > metersync.read_time(${first})`;
  try {
    const result = await db.execute<HeldReadings & Record<string, unknown>>(sql`
      with span as materialized (
        select greatest(${to}, max(${endOf}) - interval '1 microsecond') as until
        from ${intervals}
        where ${overlapping(to)}
      )
      select
        count(*)::int as count,
        to_char(max(${endOf}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as end,
        coalesce(max(granularity_seconds), 0) as longest
      from ${intervals}
      where ${overlapping(sql`(select until from span)`)}`);
    return result.rows[0] ?? none;
  } catch (error) {
    if (isRefusal(error)) return none;
    throw error;
  }
}

/** A listed reading, and the same or another one of the warehouse in its time, by their ids. */
export interface Overlap extends Record<string, unknown> {
  readonly listed: string;
  readonly other: string;
  /** Whether the service changed the other one later than the listed one. */
  readonly newer: boolean;
}

/** Finds readings of a meter within `range` in the time of the given ones. Refused ones have none. */
export async function overlaps(
  { db, zoneIsUtc }: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  given: IntervalColumns,
  range: { readonly start?: string | undefined; readonly end?: string | undefined },
  longest: number,
): Promise<Overlap[]> {
  const { columns, right } = readReadings(given, zoneIsUtc, true);
  const found = await splitOnRefusal<number, Overlap[]>(
    right,
    async (places) => {
      const result = await db.execute<Overlap>(sql`
        with listed as materialized (${anyReadings(readingsAt(columns, places))}
        ), held as materialized (
          select *, ${endOf} as end_at
          from ${intervals}
          where meter_id = ${meterId}
            and start_at >= (
              select min(start_at) - make_interval(secs => ${longest})
              from listed
            )
            and start_at < (
              select max(${endOf})
              from listed
            )
        )
        select
          ${meterId} || ${keyAsText(sql`listed`)} as listed,
          ${meterId} || ${keyAsText(sql`held`)} as other,
          coalesce(held.updated > listed.updated, false) as newer
        from listed
          join held
            on held.start_at < listed.start_at
              + make_interval(secs => listed.granularity_seconds)
            and held.end_at > listed.start_at
        where coalesce(held.start_at >= ${range.start ?? null}::timestamptz, true)
          and coalesce(held.end_at <= ${range.end ?? null}::timestamptz, true)`);
      return result.rows;
    },
    () => [],
  );
  return found.flat();
}
