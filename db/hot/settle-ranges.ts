import { sql } from 'drizzle-orm';
import type { WaitingReason } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { postponedAs, settledAs } from '../events/outcomes.ts';
import { pendingOf } from '../events/queue.ts';
import { readingsIn } from '../records/interval-reads.ts';
import type { TimeRange } from '../records/time-range.ts';
import { journal } from '../schema/metersync.ts';

/** An event whose range has fewer readings than it reported. */
export interface Shortfall extends Record<string, unknown> {
  readonly id: string;
  readonly reported: number;
  readonly found: number;
  /** Whether the range is read again. */
  readonly waits: boolean;
}

/**
 * Settles a meter's events whose ranges were completely read from `readAt` on. If fewer readings
 * are found than an event reported, the event waits, and is settled with a shortfall after
 * `shortfallAttemptsMax` attempts. Returns the events with a shortfall. Raw because it ends each
 * read of a meter's ranges: one statement counts the readings of each event and settles it under
 * its lock. Measured: 0.18 ms and 31 blocks for one range.
 */
export async function settleRanges(
  db: Executor,
  meterId: string,
  readAt: string,
  ranges: readonly TimeRange[],
): Promise<{ applied: number; short: Shortfall[] }> {
  const starts = array(
    ranges.map(({ start }) => start),
    'text',
  );
  const ends = array(
    ranges.map(({ end }) => end),
    'text',
  );
  const result = await hot(db, 'settleRanges').execute<Shortfall & { lacks: boolean }>(sql`
    with fetched as materialized (
      select range_agg(tstzrange(starts::timestamptz, ends::timestamptz, '[]')) as spans
      from unnest(${starts}, ${ends}) as t (starts, ends)
    ), waiting as materialized (
      select
        e.id,
        e.due_at <= ${readAt}::timestamptz or e.attempts = 0 as was_due,
        e.interval_count as reported,
        (${readingsIn(sql`e`)}) as found,
        case when e.error_code = ${readingsMissing.code} then e.attempts else 0 end as tried
      from fetched
        cross join ${pendingOf.owner('intervals', meterId)}
      where e.recorded_at <= ${readAt}::timestamptz
        and tstzrange(e.range_start, e.range_end, '[]') <@ fetched.spans
    ), judged as materialized (
      select *, lacks and tried < ${recordPolicy.shortfallAttemptsMax} as waits
      from waiting
        cross join lateral (select coalesce(found < reported, false) as lacks) l
    ), settled as (
      update ${journal} e set
        ${settledAs(sql`'applied'`, { attempts: sql`j.tried` })},
        intervals_found = j.found
      from judged j
      where e.id = any(array(select id from judged where not waits))
        and e.id = j.id
    ), later as (
      update ${journal} e set
        ${postponedAs({ tried: sql`j.tried`, reason: readingsMissing })}
      from judged j
      where e.id = any(array(select id from judged where waits and was_due))
        and e.id = j.id
    )
    select id, reported::float8 as reported, found::float8 as found, waits, lacks
    from judged
    where not waits
      or was_due`);
  const short = result.rows.filter(({ lacks }) => lacks);
  return {
    applied: result.rows.filter(({ waits }) => !waits).length,
    short: short.map(({ id, reported, found, waits }) => ({ id, reported, found, waits })),
  };
}

/** Why an event waits whose range has fewer readings than it reported. */
export const readingsMissing: WaitingReason = {
  code: 'READINGS_NOT_SHOWN',
  message: 'the service shows fewer readings than this event reported',
};
