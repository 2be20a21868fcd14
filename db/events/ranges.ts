import { and, eq, isNull, sql } from 'drizzle-orm';
import type { WaitingReason } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { payloadOf, pendingOf, postponedAs, queueOf, settledAs } from '../queue/queue.ts';
import {
  daySeconds,
  type Granularity,
  isoTime,
  readingsAcross,
  readingsIn,
  type TimeRange,
} from '../readings/ranges.ts';
import { journal } from '../schema/metersync.ts';
import { rejectedRecords } from '../schema/reads.ts';
import { companies, intervals, meters, usageData } from '../schema/utility.ts';

const usualSeconds = 900;
/** The longest reading that is looked for across a bound: a quarter of a year. An event may claim any. */
const acrossSecondsMax = 93 * daySeconds;

/** The due ranges of a meter, and what their reader needs to know. */
export interface DueRanges {
  /** The warehouse's clock before anything is read. */
  readonly readAt: string;
  /** Due ranges. Ranges that overlap or touch are merged. */
  readonly ranges: readonly DueRange[];
  readonly granularity: Granularity;
  /** Whether the meter has a row. */
  readonly known: boolean;
  /** Whether a refused reading of any meter is stored, which Postgres may accept now. */
  readonly anyRefused: boolean;
}

/** A range and its length. */
export interface DueRange extends TimeRange {
  readonly seconds: number;
}

/**
 * Reads the first `limit` due ranges of a meter, with the readings across their bounds. Raw
 * because every catch-up of a meter begins with it, and because Postgres merges the ranges. Measured: 0.14 ms
 * and 10 blocks for one range.
 */
export async function dueRanges(db: Executor, meterId: string, limit: number): Promise<DueRanges> {
  const { rows } = await prepared(db, 'dueRanges').execute<{
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
      select
        -- A range that lacks readings is read again with those that cross its bounds.
        greatest(e.range_start - across, '0001-01-01T00:00:00Z') as starts,
        greatest(e.range_end, least(e.range_end + across, '9999-12-31T23:59:59.999999Z')) as ends,
        reported.shortest,
        reported.longest
      from (
          select id, range_start, range_end, due_at, error_code
          from ${journal}
          where queue = ${queueOf('interval', meterId)}
          offset 0
        ) e
        left join lateral ${payloadOf(sql`e.id`)} said on true
        cross join lateral (
          select min(seconds) as shortest, max(seconds) as longest
          from jsonb_array_elements_text(
            metersync.elements(said.payload -> 'granularitySeconds')
          ) entry
            cross join lateral (
              select case when entry ~ '^[1-9]\\d{0,8}$' then entry::bigint end
            ) as t (seconds)
        ) reported
        cross join lateral (
          select
            case
              when e.error_code = ${readingsMissing.code}
              then make_interval(
                secs =>
                  least(coalesce(reported.longest, ${daySeconds}), ${acrossSecondsMax})::float8
              )
              else '0'
            end as across
        ) w
      where e.due_at <= clock_timestamp()
    ), reported as (
      select min(shortest)::float8 as shortest, max(longest)::float8 as longest
      from due
    ), merged as (
      select span
      from (
        select unnest(range_agg(tstzrange(starts, ends, '[]'))) as span
        from due
      ) every
      order by span
      limit ${limit}
    ), whole as (
      select least(lower(span), first.starts) as starts, greatest(upper(span), last.ends) as ends
      from merged
        cross join lateral (
          select min(start_at) as starts
          from ${readingsAcross(meterId, sql`lower(span)`)}
        ) first
        cross join lateral (
          select max(end_at) as ends
          from ${readingsAcross(meterId, sql`upper(span)`)}
        ) last
    )
    select
      clock.now,
      reported.shortest,
      reported.longest,
      ${isoTime(sql`starts`)} as start,
      ${isoTime(sql`ends`)} as end,
      extract(epoch from ends - starts)::float8 as seconds,
      exists (select from ${meters} where id = ${meterId}) as known,
      exists (select from ${rejectedRecords} where resource = 'intervals') as any_refused
    from (select clock_timestamp()::text as now) clock
      cross join reported
      left join whole on true
    order by starts`);
  const [first] = rows;
  return {
    readAt: first?.now ?? '',
    ranges: rows.flatMap(({ start, end, seconds }) =>
      start === null || end === null || seconds === null ? [] : [{ start, end, seconds }],
    ),
    granularity: {
      shortest: first?.shortest ?? usualSeconds,
      longest: Math.max(first?.longest ?? 0, daySeconds),
    },
    known: first?.known ?? false,
    anyRefused: first?.any_refused ?? false,
  };
}

/** Where the next piece of a range begins, and its width as a multiple of the usual width. */
export interface RangeProgress {
  readonly from: string;
  readonly width: number;
}

/** Maximum overlap of pieces: a quarter of a year, because an event may claim any granularity. */
const overlapSecondsMax = 93 * daySeconds;

/**
 * Returns the next piece of a range, wide enough for `readings` readings of the reported length,
 * and where the piece after it begins; null after the last. Pieces overlap by the longest reading,
 * because the service may leave out a reading that crosses the bounds of a request.
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
  const [begins, ends] = [sql`${from}::timestamptz`, sql`${end}::timestamptz`];
  const isLast = sql`extract(epoch from ${ends} - ${begins})::float8 <= ${seconds}::float8`;
  const cut = sql`${begins} + make_interval(secs => ${seconds})`;
  const first = sql`greatest(${start}::timestamptz, ${begins} - make_interval(secs => ${overlap}))`;
  const [next] = await db
    .select({
      start: isoTime(first),
      end: isoTime(sql`case when ${isLast} then ${ends} else ${cut} end`),
      next: sql<string | null>`${isoTime(sql`case when not ${isLast} then ${cut} end`)}`,
    })
    .from(sql`(select) piece`);
  if (next === undefined) throw new Error('a range without a piece');
  return { piece: { start: next.start, end: next.end }, next: next.next };
}

/**
 * Returns the width of the next piece. A sparse piece doubles it, so that the cost depends on the
 * readings in a range and not on the width that an event claims.
 */
export function nextWidth(width: number, held: number, readings: number): number {
  if (held * 2 <= readings) return width * 2;
  return held > readings ? Math.max(1, width / 2) : width;
}

/** Whether the service has a meter, by its row or else by usage or readings that name it. */
export async function isKnownMeter(db: Executor, meterId: string): Promise<boolean> {
  const [meter] = await db
    .select({ deletedAt: meters.deletedAt })
    .from(meters)
    .where(eq(meters.id, meterId));
  if (meter !== undefined) return meter.deletedAt === null;
  const used = await db
    .select({ id: usageData.id })
    .from(usageData)
    .where(and(eq(usageData.meterId, meterId), isNull(usageData.deletedAt)))
    .limit(1);
  if (used.length > 0) return true;
  const read = await db
    .select({ meterId: intervals.meterId })
    .from(intervals)
    .where(eq(intervals.meterId, meterId))
    .limit(1);
  return read.length > 0;
}

/** Returns a meter's company, from its row (`known`) or an event about its intervals. */
export async function companyOfMeter(
  db: Executor,
  meterId: string,
): Promise<{ companyId: string | null; known: boolean }> {
  const [meter] = await db
    .select({ companyId: meters.companyId })
    .from(meters)
    .where(eq(meters.id, meterId));
  if (meter?.companyId != null) return { companyId: meter.companyId, known: true };
  const company = db
    .select({ id: companies.id })
    .from(companies)
    .where(eq(companies.externalId, sql`said.payload ->> 'companyExternalId'`))
    .offset(literal(0))
    .as('company');
  const [named] = await db
    .select({ companyId: company.id })
    .from(journal)
    .crossJoinLateral(sql`${payloadOf(journal.id)} said`)
    .crossJoinLateral(company)
    .where(and(eq(journal.kind, 'interval'), eq(journal.recordId, meterId)))
    .limit(1);
  return { companyId: named?.companyId ?? null, known: meter !== undefined };
}

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
  const result = await prepared(db, 'settleRanges').execute<Shortfall & { lacks: boolean }>(sql`
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
