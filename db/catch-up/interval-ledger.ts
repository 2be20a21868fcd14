import { type SQL, sql } from 'drizzle-orm';
import { array, columnNames } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import {
  intervalFetches,
  journal,
  rejectedRecords,
  settlements,
  staleRecords,
} from '../schema/metersync.ts';
import { companies, intervals, meters } from '../schema/utility.ts';
import { keyOf, staleOf, type WaitingReason } from './stale.ts';

/**
 * Looks at a range that shows fewer readings than its event told of, some seconds apart in all:
 * then what it shows is taken, and the shortfall kept.
 */
export const shortfallAttemptsMax = 4;

const iso = sql.raw(`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`);
const isoTime = (time: SQL): SQL => sql`to_char(${time} at time zone 'UTC', ${iso})`;

/** A range of time, both ends included, as ISO times in UTC. */
export interface TimeRange {
  readonly start: string;
  readonly end: string;
}

/**
 * How dense a meter's readings are, as its events say: seconds of its shortest and of its longest
 * ones.
 */
export interface Granularity {
  readonly shortest: number;
  readonly longest: number;
}

const usualSeconds = 900;
const daySeconds = 86_400;

/** What is due of a meter, and what whoever reads it has to know. */
export interface DueRanges {
  /** The warehouse's clock before anything is read. */
  readonly readAt: string;
  /** Overlapping and touching ones merged. */
  readonly ranges: readonly DueRange[];
  readonly granularity: Granularity;
  /** Whether the meter has a row. */
  readonly known: boolean;
  /** Whether Postgres refused any reading, of whichever meter, that it may take by now. */
  readonly anyRefused: boolean;
}

/** A range and its length. */
export interface DueRange extends TimeRange {
  readonly seconds: number;
}

/** Announced ranges of a meter that are due, the first of them. */
export async function dueRanges(db: Executor, meterId: string, limit: number): Promise<DueRanges> {
  const result = await db.execute<{
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
      select e.range_start, e.range_end, e.payload
      from (
          select record_id, due_at
          from ${staleRecords}
          where queue = ${keyOf('interval', meterId)}
          offset 0
        ) s
        cross join lateral (
          select range_start, range_end, payload
          from ${journal}
          where id = s.record_id
          offset 0
        ) e
      where s.due_at <= clock_timestamp()
    ), merged as (
      select span
      from (
        select unnest(range_agg(tstzrange(range_start, range_end, '[]'))) as span
        from due
      ) every
      order by span
      limit ${limit}
    ), told as (
      select min(seconds)::float8 as shortest, max(seconds)::float8 as longest
      from due
        cross join lateral jsonb_array_elements_text(
          metersync.elements(payload -> 'granularitySeconds')
        ) told
        cross join lateral (
          select case when told ~ '^[1-9]\\d{0,8}$' then told::bigint end
        ) as t (seconds)
    )
    select
      clock.now,
      told.shortest,
      told.longest,
      ${isoTime(sql`lower(span)`)} as start,
      ${isoTime(sql`upper(span)`)} as end,
      extract(epoch from upper(span) - lower(span))::float8 as seconds,
      exists (select from ${meters} where id = ${meterId}) as known,
      exists (select from ${rejectedRecords} where resource = 'intervals') as any_refused
    from (select clock_timestamp()::text as now) clock
      cross join told
      left join merged on true
    order by span`);
  const [first] = result.rows;
  if (first === undefined) throw new Error('a clock without a time');
  const { shortest, longest } = first;
  return {
    readAt: first.now,
    ranges: result.rows.flatMap(({ start, end, seconds }) =>
      start === null || end === null || seconds === null ? [] : [{ start, end, seconds }],
    ),
    granularity: {
      shortest: shortest ?? usualSeconds,
      longest: Math.max(longest ?? 0, daySeconds),
    },
    known: first.known,
    anyRefused: first.any_refused,
  };
}

/**
 * How far the pieces of a range are: where the next begins, and how many times the usual width it
 * has.
 */
export interface RangeProgress {
  readonly from: string;
  readonly width: number;
}

/** Longest reading by which pieces overlap: what an event says is a claim. A quarter of a year. */
const overlapSecondsMax = 93 * daySeconds;

/**
 * The next piece of a range, of so many readings of the length that events told, and where the one
 * after it begins; null behind the last. Each begins earlier than the one before ends by the length
 * of the longest reading: the service may leave out a reading that crosses the bounds that it is
 * asked for.
 */
export async function nextPiece(
  db: Executor,
  { start, end, seconds: length }: TimeRange & Partial<DueRange>,
  { from, width }: RangeProgress,
  { shortest, longest }: Granularity,
  readings: number,
): Promise<{ piece: TimeRange; next: string | null }> {
  const overlap = Math.min(longest, overlapSecondsMax);
  const seconds = Math.max(shortest * readings, overlap) * width;
  // Most are one piece: their length says so.
  if (from === start && length !== undefined && length <= seconds)
    return { piece: { start, end }, next: null };
  const result = await db.execute<
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
      ) whole
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
 * The width of the next piece, after one that held so many readings: a stretch that holds few is
 * gone through in steps that double, so that a range costs what there is in it, however wide an
 * event claims that it is.
 */
export function nextWidth(width: number, held: number, readings: number): number {
  if (held * 2 <= readings) return width * 2;
  return held > readings ? Math.max(1, width / 2) : width;
}

/**
 * Notes that a range of a meter, or all of it, was fetched; events whose readings came late are
 * counted anew.
 */
export async function noteFetched(
  db: Executor,
  { meterId, start, end }: { readonly meterId: string } & Partial<TimeRange>,
): Promise<void> {
  const fetched = sql`tstzrange(${start ?? null}::timestamptz, ${end ?? null}::timestamptz, '[]')`;
  await db.execute(sql`
    with noted as (
      insert into ${intervalFetches} as f (meter_id, fetched)
      values (${meterId}, tstzmultirange(${fetched}))
      on conflict (meter_id) do update set
        fetched = f.fetched + excluded.fetched,
        updated_at = clock_timestamp()
    )
    update ${settlements} x set intervals_found = (${readingsIn(sql`e`)})
    from ${journal} e
    where x.owner = ${meterId}
      and x.intervals_found < x.intervals_told
      and e.id = x.record_id
      and tstzrange(e.range_start, e.range_end, '[]') <@ ${fetched}`);
}

/** How many readings the warehouse has in the range of an event. */
const readingsIn = (event: SQL): SQL => sql`

        select count(*)
        from ${intervals} i
        where i.meter_id = ${event}.record_id
          and i.start_at between ${event}.range_start and ${event}.range_end
      `;

/** An event whose range shows fewer readings than it told of. */
export interface Shortfall extends Record<string, unknown> {
  readonly id: string;
  readonly told: number;
  readonly found: number;
  /** Whether it is looked at again. */
  readonly waits: boolean;
}

/**
 * Settles the announcements of a meter that the given ranges, read from `readAt` on, cover. Where
 * fewer readings are found than an event told of it waits, and is settled short after some looks.
 * Returns those.
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
  const { code, message } = notAllShown;
  const result = await db.execute<Shortfall & { lacks: boolean }>(sql`
    with fetched as materialized (
      select range_agg(tstzrange(starts::timestamptz, ends::timestamptz, '[]')) as spans
      from unnest(${starts}, ${ends}) as t (starts, ends)
    ), waiting as materialized (
      select
        s.key,
        s.kind,
        s.record_id,
        s.owner,
        s.since,
        s.due_at,
        e.interval_count as told,
        (${readingsIn(sql`e`)}) as found,
        case when s.error_code = ${code} then s.attempts else 0 end as tried
      from fetched
        cross join ${staleOf.owner('intervals', meterId)}
        cross join lateral (
          select *
          from ${journal}
          where id = s.record_id
          offset 0
        ) e
      where s.told_at <= ${readAt}::timestamptz
        and tstzrange(e.range_start, e.range_end, '[]') <@ fetched.spans
    ), judged as materialized (
      select *, lacks and tried < ${shortfallAttemptsMax} as waits
      from waiting
        cross join lateral (select coalesce(found < told, false) as lacks) l
    ), settled as (
      insert into ${settlements} (${columnNames(settledColumns)})
      select
        kind,
        record_id,
        owner,
        since,
        ${readAt}::timestamptz,
        'infinity',
        'applied',
        tried,
        told,
        found
      from judged
      where not waits
    ), done as (
      delete from ${staleRecords}
      where key = any(array(select key from judged where not waits))
    ), later as (
      update ${staleRecords} s set
        attempts = j.tried + 1,
        error_code = ${code},
        error = ${message},
        due_at = clock_timestamp() + interval '1 second' * power(2, j.tried)
      from judged j
      where s.key = any(array(select key from judged where waits))
        and j.key = s.key
        and j.due_at <= ${readAt}::timestamptz
    )
    select record_id as id, told::float8 as told, found::float8 as found, waits, lacks
    from judged
    where not waits
      or due_at <= ${readAt}::timestamptz`);
  const short = result.rows.filter(({ lacks }) => lacks);
  return {
    applied: result.rows.filter(({ waits }) => !waits).length,
    short: short.map(({ id, told, found, waits }) => ({ id, told, found, waits })),
  };
}

const settledColumns = [
  settlements.kind,
  settlements.recordId,
  settlements.owner,
  settlements.since,
  settlements.readAt,
  settlements.shown,
  settlements.outcome,
  settlements.attempts,
  settlements.intervalsTold,
  settlements.intervalsFound,
];

const notAllShown: WaitingReason = {
  code: 'READINGS_NOT_SHOWN',
  message: 'the service shows fewer readings than this event told of',
};

/** The company that a meter belongs to, as the meter's row or an event of its intervals says. */
export async function companyOfMeter(
  db: Executor,
  meterId: string,
): Promise<{ companyId: string | null; known: boolean }> {
  const result = await db.execute<{ company_id: string | null; known: boolean }>(sql`
    select
      coalesce(
        (select company_id from ${meters} where id = ${meterId}),
        (
          select c.id
          from ${journal} e
            cross join lateral (
              select id
              from ${companies}
              where external_id = e.payload ->> 'companyExternalId'
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
