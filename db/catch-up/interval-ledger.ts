import { eq, type SQL, sql } from 'drizzle-orm';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { settledAs, unlessRecordedAnew } from '../events/settling.ts';
import type { ReadRange } from '../records/interval-key.ts';
import { intervalFetches, journal, staleRecords } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import type { TimeRange } from './due-ranges.ts';
import { backOff, type WaitingReason } from './postpone.ts';
import { staleOf } from './stale.ts';

/**
 * Notes that a range of a meter, or all of it, was fetched. Recounts events whose readings came
 * late. Returns whether another read removed readings of the meter since this one began: then this
 * one may have written some of them again.
 */
export async function noteFetched(
  db: Executor,
  { meterId, start, end }: { readonly meterId: string } & ReadRange,
  beganAt: string | null = null,
): Promise<boolean> {
  const fetched = sql`tstzrange(${start ?? null}::timestamptz, ${end ?? null}::timestamptz, '[]')`;
  const { rows } = await hot(db, 'noteFetched').execute<{ removed: boolean }>(sql`
    with noted as (
      insert into ${intervalFetches} as f (meter_id, fetched)
      values (${meterId}, tstzmultirange(${fetched}))
      on conflict (meter_id) do update set
        fetched = f.fetched + excluded.fetched,
        updated_at = clock_timestamp()
      returning removed_at
    ), short as materialized (
      select id
      from ${journal}
      where record_id = ${meterId}
        and lacking is not null
        and tstzrange(range_start, range_end, '[]') <@ ${fetched}
      ${unlessRecordedAnew}
    ), recounted as (
      update ${journal} e set intervals_found = (${readingsIn(sql`e`)})
      where id = any(array(select id from short))
    )
    select coalesce(removed_at > ${beganAt}::timestamptz, false) as removed
    from noted`);
  return rows[0]?.removed === true;
}

/**
 * Keeps others from noting or replacing readings of a meter until the transaction ends. Returns
 * whether readings of the meter were removed since the moment.
 */
export async function lockReadings(tx: Executor, meterId: string, since: string): Promise<boolean> {
  const { rows } = await hot(tx, 'lockReadings').execute<{ removed: boolean }>(sql`
    insert into ${intervalFetches} as f (meter_id, fetched)
    values (${meterId}, '{}')
    on conflict (meter_id) do update set fetched = f.fetched
    returning coalesce(removed_at > ${since}::timestamptz, false) as removed`);
  return rows[0]?.removed === true;
}

/** Notes that readings of a meter are removed: see `noteFetched`. */
export async function noteRemoved(tx: Executor, meterId: string): Promise<void> {
  await tx
    .update(intervalFetches)
    .set({ removedAt: sql`clock_timestamp()` })
    .where(eq(intervalFetches.meterId, meterId));
}

/** Counts the readings that the warehouse has in the range of an event. */
const readingsIn = (event: SQL): SQL => sql`

        select count(*)
        from ${intervals} i
        where i.meter_id = ${event}.record_id
          and i.start_at between ${event}.range_start and ${event}.range_end
      `;

/** An event whose range has fewer readings than it reported. */
export interface Shortfall extends Record<string, unknown> {
  readonly id: string;
  readonly reported: number;
  readonly found: number;
  /** Whether the range is read again. */
  readonly waits: boolean;
}

/**
 * Settles a meter's events whose ranges were completely read from `readAt` on. If fewer readings are found
 * than an event reported, the event waits, and is settled with a shortfall after `shortfallAttemptsMax`
 * attempts. Returns the events with a shortfall.
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
  const { code, message } = readingsMissing;
  const result = await hot(db, 'settleRanges').execute<Shortfall & { lacks: boolean }>(sql`
    with fetched as materialized (
      select range_agg(tstzrange(starts::timestamptz, ends::timestamptz, '[]')) as spans
      from unnest(${starts}, ${ends}) as t (starts, ends)
    ), waiting as materialized (
      select
        s.key,
        s.record_id,
        s.due_at,
        e.interval_count as reported,
        (${readingsIn(sql`e`)}) as found,
        case when s.error_code = ${code} then s.attempts else 0 end as tried
      from fetched
        cross join ${staleOf.owner('intervals', meterId)}
        cross join lateral (
          select *
          from ${journal}
          where id = s.record_id
          offset 0
          ${unlessRecordedAnew}
        ) e
      where s.last_event_at <= ${readAt}::timestamptz
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
      where e.id = any(array(select record_id from judged where not waits))
        and e.id = j.record_id
        and e.outcome = 'pending'
    ), done as (
      delete from ${staleRecords}
      where key = any(array(select key from judged where not waits))
    ), later as (
      update ${staleRecords} s set
        attempts = j.tried + 1,
        error_code = ${code},
        error = ${message},
        due_at = clock_timestamp() + ${backOff(sql`j.tried`)}
      from judged j
      where s.key = any(array(select key from judged where waits))
        and j.key = s.key
        and j.due_at <= ${readAt}::timestamptz
    )
    select record_id as id, reported::float8 as reported, found::float8 as found, waits, lacks
    from judged
    where not waits
      or due_at <= ${readAt}::timestamptz`);
  const short = result.rows.filter(({ lacks }) => lacks);
  return {
    applied: result.rows.filter(({ waits }) => !waits).length,
    short: short.map(({ id, reported, found, waits }) => ({ id, reported, found, waits })),
  };
}

const readingsMissing: WaitingReason = {
  code: 'READINGS_NOT_SHOWN',
  message: 'the service shows fewer readings than this event reported',
};
