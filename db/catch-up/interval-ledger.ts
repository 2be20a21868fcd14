import { eq, type SQL, sql } from 'drizzle-orm';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { payloadOf } from '../events/items.ts';
import { settledAs, unlessRecordedAnew } from '../events/settling.ts';
import type { ReadRange } from '../records/interval-key.ts';
import { intervalFetches, journal, rejectedRecords, staleRecords } from '../schema/metersync.ts';
import { companies, intervals, meters } from '../schema/utility.ts';
import { firstOf } from './due.ts';
import { backOff, keyOf, staleOf, type WaitingReason } from './stale.ts';

const iso = sql.raw(`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`);
const isoTime = (time: SQL): SQL => sql`to_char(${time} at time zone 'UTC', ${iso})`;

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

const usualSeconds = 900;
const daySeconds = 86_400;

/** The due ranges of a meter, and what their reader needs to know. */
export interface DueRanges {
  /** The warehouse's clock before anything is read. */
  readonly readAt: string;
  /** Due ranges; overlapping and adjacent ranges are merged. */
  readonly ranges: readonly DueRange[];
  readonly granularity: Granularity;
  /** Whether the meter has a row. */
  readonly known: boolean;
  /** Whether Postgres refused a reading of any meter, which it may accept now. */
  readonly anyRefused: boolean;
}

/** A range and its length. */
export interface DueRange extends TimeRange {
  readonly seconds: number;
}

/** Reads the first `limit` due ranges of a meter. */
export async function dueRanges(db: Executor, meterId: string, limit: number): Promise<DueRanges> {
  const result = await hot(db, 'dueRanges').execute<{
    now: string;
    start: string | null;
    end: string | null;
    seconds: number | null;
    shortest: number | null;
    longest: number | null;
    known: boolean;
    any_refused: boolean;
  }>(sql`
    with due as materialized (
      select e.range_start, e.range_end, said.payload
      from (
          select record_id, due_at
          from ${staleRecords}
          where queue = ${keyOf('interval', meterId)}
          offset 0
        ) s
        cross join lateral (
          select range_start, range_end
          from ${journal}
          where id = s.record_id
          offset 0
        ) e
        left join lateral ${payloadOf(sql`s.record_id`)} said on true
      where s.due_at <= clock_timestamp()
    ), merged as (
      select span
      from (
        select unnest(range_agg(tstzrange(range_start, range_end, '[]'))) as span
        from due
      ) every
      order by span
      limit ${limit}
    ), reported as (
      select min(seconds)::float8 as shortest, max(seconds)::float8 as longest
      from due
        cross join lateral jsonb_array_elements_text(
          metersync.elements(payload -> 'granularitySeconds')
        ) entry
        cross join lateral (
          select case when entry ~ '^[1-9]\\d{0,8}$' then entry::bigint end
        ) as t (seconds)
    )
    select
      clock.now,
      reported.shortest,
      reported.longest,
      ${isoTime(sql`lower(span)`)} as start,
      ${isoTime(sql`upper(span)`)} as end,
      extract(epoch from upper(span) - lower(span))::float8 as seconds,
      exists (select from ${meters} where id = ${meterId}) as known,
      exists (select from ${rejectedRecords} where resource = 'intervals') as any_refused
    from (select clock_timestamp()::text as now) clock
      cross join reported
      left join merged on true
    order by span`);
  const { now, shortest, longest, known, any_refused } = firstOf(result.rows);
  return {
    readAt: now,
    ranges: result.rows.flatMap(({ start, end, seconds }) =>
      start === null || end === null || seconds === null ? [] : [{ start, end, seconds }],
    ),
    granularity: {
      shortest: shortest ?? usualSeconds,
      longest: Math.max(longest ?? 0, daySeconds),
    },
    known,
    anyRefused: any_refused,
  };
}

/** Where the next piece of a range begins, and its width as a multiple of the usual one. */
export interface RangeProgress {
  readonly from: string;
  readonly width: number;
}

/**
 * Longest overlap of pieces, in seconds: a quarter of a year. An event may claim any granularity.
 */
const overlapSecondsMax = 93 * daySeconds;

/**
 * Returns the next piece of a range and where the piece after it begins; null after the last. A
 * piece is wide enough for `readings` readings of the reported length. Pieces overlap by the length
 * of the longest reading: the service may leave out a reading that crosses the bounds of a request.
 */
export async function nextPiece(
  db: Executor,
  { start, end, seconds: length }: DueRange,
  { from, width }: RangeProgress,
  { shortest, longest }: Granularity,
  readings: number,
): Promise<{ piece: TimeRange; next: string | null }> {
  const overlap = Math.min(longest, overlapSecondsMax);
  const seconds = Math.max(shortest * readings, overlap) * width;
  // Most ranges fit in one piece.
  if (from === start && length <= seconds) return { piece: { start, end }, next: null };
  const result = await hot(db, 'nextPiece').execute<
    TimeRange & { next: string | null } & Record<string, unknown>
  >(sql`
    select
      ${isoTime(sql`greatest(starts, begins - make_interval(secs => ${overlap}))`)} as start,
      ${isoTime(sql`case when is_last then ends else cut end`)} as end,
      case when not is_last then ${isoTime(sql`cut`)} end as next
    from (
        select
          ${start}::timestamptz as starts,
          ${from}::timestamptz as begins,
          ${end}::timestamptz as ends
      ) bounds
      cross join lateral (
        select extract(epoch from ends - begins)::float8 <= ${seconds}::float8 as is_last
      ) length
      cross join lateral (
        select case when not is_last then begins + make_interval(secs => ${seconds}) end as cut
      ) piece`);
  const [row] = result.rows;
  if (row === undefined) throw new Error('a range without a piece');
  return { piece: { start: row.start, end: row.end }, next: row.next };
}

/**
 * Returns the width of the next piece from how many readings the last one held. Sparse stretches
 * double the width: the cost follows the readings in a range, not the width that an event claims.
 */
export function nextWidth(width: number, held: number, readings: number): number {
  if (held * 2 <= readings) return width * 2;
  return held > readings ? Math.max(1, width / 2) : width;
}

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

/** Returns the company of a meter, from the meter's row or an event of its intervals. */
export async function companyOfMeter(
  db: Executor,
  meterId: string,
): Promise<{ companyId: string | null; known: boolean }> {
  const result = await hot(db, 'companyOfMeter').execute<{
    company_id: string | null;
    known: boolean;
  }>(sql`
    select
      coalesce(
        (select company_id from ${meters} where id = ${meterId}),
        (
          select c.id
          from ${journal} e
            cross join lateral ${payloadOf(sql`e.id`)} said
            cross join lateral (
              select id
              from ${companies}
              where external_id = said.payload ->> 'companyExternalId'
              offset 0
            ) c
          where e.kind = 'interval'
            and e.record_id = ${meterId}
          limit 1
        )
      ) as company_id,
      exists (select from ${meters} where id = ${meterId}) as known`);
  const row = result.rows[0];
  return { companyId: row?.company_id ?? null, known: row?.known ?? false };
}
