import { and, eq, isNull, sql } from 'drizzle-orm';
import type { WaitingReason } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { backOff, pendingOf, queueOf } from '../queue/queue.ts';
import {
  daySeconds,
  type Granularity,
  isoTime,
  readingsAcross,
  readingsIn,
  type TimeRange,
} from '../readings/ranges.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';
import { rejectedRecords } from '../schema/reads.ts';
import { companies, intervals, meters, usageData } from '../schema/utility.ts';

const usualSeconds = 900;
/** The longest reading that is looked for across a bound: a quarter of a year. An event may claim any length. */
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

/** Reads the first `limit` due ranges of a meter, with the readings across their bounds. */
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
    with waiting as materialized (
      select id, range_start, range_end, error_code, due_at
      from ${journal}
      where queue = ${queueOf('interval', meterId)}
    ), due as materialized (
      select * from waiting where due_at <= clock_timestamp()
    ), reported as materialized (
      select id, min(seconds) as shortest, max(seconds) as longest
      from ${eventPayloads}
        cross join lateral
          jsonb_array_elements_text(metersync.elements(payload -> 'granularitySeconds')) entry
        cross join lateral (
          select case when entry ~ '^[1-9]\\d{0,8}$' then entry::bigint end as seconds
        ) length
      where id = any(array(select id from due))
      group by id
    ), widened as (
      select
        -- A range that lacks readings is read again with those that cross its bounds.
        greatest(range_start - across, '0001-01-01T00:00:00Z') as starts,
        greatest(range_end, least(range_end + across, '9999-12-31T23:59:59.999999Z')) as ends
      from due
        left join reported using (id)
        cross join lateral (
          select case
              when error_code = ${readingsMissing.code} then make_interval(
                secs => least(coalesce(longest, ${daySeconds}), ${acrossSecondsMax})::float8
              )
              else '0'
            end as across
        ) width
    ), merged as (
      select unnest(range_agg(tstzrange(starts, ends, '[]'))) as span
      from widened
      order by span
      limit ${limit}
    ), whole as (
      select least(lower(span), first.starts) as starts, greatest(upper(span), last.ends) as ends
      from merged
        cross join lateral (
          select min(start_at) as starts from ${readingsAcross(meterId, sql`lower(span)`)}
        ) first
        cross join lateral (
          select max(end_at) as ends from ${readingsAcross(meterId, sql`upper(span)`)}
        ) last
    )
    select
      clock_timestamp()::text as now,
      (select min(shortest) from reported)::float8 as shortest,
      (select max(longest) from reported)::float8 as longest,
      ${isoTime(sql`starts`)} as start,
      ${isoTime(sql`ends`)} as end,
      extract(epoch from ends - starts)::float8 as seconds,
      exists (select from ${meters} where id = ${meterId}) as known,
      exists (select from ${rejectedRecords} where resource = 'intervals') as any_refused
    from (select) one
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
  const overlap = Math.min(longest, acrossSecondsMax);
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
  const { rows } = await db.execute<{ id: string }>(sql`
    select c.id
    from ${journal} e
      join ${eventPayloads} p on p.id = e.id
      join ${companies} c on c.external_id = p.payload ->> 'companyExternalId'
    where e.kind = 'interval' and e.record_id = ${meterId}
    limit 1`);
  return { companyId: rows[0]?.id ?? null, known: meter !== undefined };
}

/** An event whose range has fewer readings than it reported. */
interface Shortfall extends Record<string, unknown> {
  readonly id: string;
  readonly reported: number;
  readonly found: number;
  /** Whether the range is read again. */
  readonly waits: boolean;
}

/**
 * Settles a meter's events whose ranges were completely read from `readAt` on. If fewer readings
 * are found than an event reported, the event waits, and is settled with a shortfall after
 * `shortfallAttemptsMax` attempts. Returns the events with a shortfall.
 */
export async function settleRanges(
  db: Executor,
  meterId: string,
  readAt: string,
  ranges: readonly TimeRange[],
): Promise<{ applied: number; short: Shortfall[] }> {
  const [starts, ends] = [ranges.map(({ start }) => start), ranges.map(({ end }) => end)];
  const result = await prepared(db, 'settleRanges').execute<Shortfall & { lacks: boolean }>(sql`
    with read as materialized (
      select ${readAt}::timestamptz as began, range_agg(tstzrange(starts, ends, '[]')) as spans
      from unnest(
          ${array(starts, 'timestamptz')}, ${array(ends, 'timestamptz')}
        ) as t (starts, ends)
    ), waiting as materialized (
      select
        e.id,
        e.due_at <= read.began or e.attempts = 0 as was_due,
        e.interval_count as reported,
        ${readingsIn(sql`e`)} as found,
        case when e.error_code = ${readingsMissing.code} then e.attempts else 0 end as tried
      from read
        cross join ${pendingOf.owner('intervals', meterId)}
      where e.recorded_at <= read.began
        and tstzrange(e.range_start, e.range_end, '[]') <@ read.spans
    ), judged as materialized (
      select *, lacks and tried < ${recordPolicy.shortfallAttemptsMax} as waits
      from waiting
        cross join lateral (select coalesce(found < reported, false) as lacks) l
    ), settled as (
      update ${journal} e set
        outcome = 'applied',
        settled_at = statement_timestamp(),
        queue = null,
        due_at = null,
        error = null,
        error_code = null,
        attempts = j.tried,
        intervals_found = j.found
      from judged j
      where e.id = any(array(select id from judged where not waits))
        and e.id = j.id
    ), postponed as (
      update ${journal} e set
        attempts = j.tried + 1,
        error_code = ${readingsMissing.code},
        error = ${readingsMissing.message},
        due_at = clock_timestamp() + ${backOff(sql`j.tried`)}
      from judged j
      where e.id = any(array(select id from judged where waits and was_due))
        and e.id = j.id
    )
    select id, reported::float8 as reported, found::float8 as found, waits, lacks
    from judged
    where not waits or was_due`);
  const short = result.rows.filter(({ lacks }) => lacks);
  return {
    applied: result.rows.filter(({ waits }) => !waits).length,
    short: short.map(({ id, reported, found, waits }) => ({ id, reported, found, waits })),
  };
}

/** Why an event waits whose range has fewer readings than it reported. */
const readingsMissing: WaitingReason = {
  code: 'READINGS_NOT_SHOWN',
  message: 'the service shows fewer readings than this event reported',
};
