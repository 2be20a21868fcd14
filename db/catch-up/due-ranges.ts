import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { payloadOf } from '../events/items.ts';
import { journal, rejectedRecords, staleRecords } from '../schema/metersync.ts';
import { companies, meters } from '../schema/utility.ts';
import { firstOf } from './due.ts';
import { keyOf } from './stale.ts';

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
  /** Due ranges; overlapping and touching ones are merged. */
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
