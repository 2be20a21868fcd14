import { type SQL, sql } from 'drizzle-orm';
import { array } from './arrays.ts';
import { postponed } from './catch-up.ts';
import type { Executor } from './connect.ts';
import { dueOf, hasOutcome } from './waiting.ts';

/**
 * Looks at a range that shows fewer readings than its event told of, some seconds apart in all: then what it shows is
 * taken, and the shortfall kept.
 */
export const shortfallAttemptsMax = 4;

const iso = sql.raw(`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`);
const isoTime = (time: SQL): SQL => sql`to_char(${time} at time zone 'UTC', ${iso})`;

/** A range of time, both ends included, as ISO times in UTC. */
export interface TimeRange {
  readonly start: string;
  readonly end: string;
}

/** How dense a meter's readings are, as its events say: seconds of its shortest and of its longest ones. */
export interface Granularity {
  readonly shortest: number;
  readonly longest: number;
}

const usualSeconds = 900;
const daySeconds = 86_400;

/** Announced ranges of a meter that are due, overlapping and touching ones merged, the first of them. */
export async function dueRanges(
  db: Executor,
  meterId: string,
  limit: number,
): Promise<{ ranges: TimeRange[]; granularity: Granularity }> {
  const result = await db.execute<TimeRange & Record<string, unknown>>(sql`
    select ${isoTime(sql`lower(span)`)} as start, ${isoTime(sql`upper(span)`)} as end
    from (
      select unnest(range_agg(tstzrange(range_start, range_end, '[]'))) as span
      from metersync.events where ${dueOf('intervals', [meterId])}
    ) merged
    order by span limit ${limit}`);
  const told = await db.execute<{ shortest: number | null; longest: number | null }>(sql`
    select min(seconds)::float8 as shortest, max(seconds)::float8 as longest
    from metersync.events e,
      jsonb_array_elements_text(metersync.elements(payload -> 'granularitySeconds')) told,
      lateral (select case when told ~ '^[1-9]\\d{0,8}$' then told::bigint end) as t (seconds)
    where ${dueOf('intervals', [meterId])}`);
  const { shortest, longest } = told.rows[0] ?? {};
  return {
    ranges: result.rows.map(({ start, end }) => ({ start, end })),
    granularity: { shortest: shortest ?? usualSeconds, longest: Math.max(longest ?? 0, daySeconds) },
  };
}

/** How far the pieces of a range are: where the next begins, and how many times the usual width it has. */
export interface RangeProgress {
  readonly from: string;
  readonly width: number;
}

/** Longest reading by which pieces overlap: what an event says is a claim. A quarter of a year. */
const overlapSecondsMax = 93 * daySeconds;

/**
 * The next piece of a range, of so many readings of the length that events told, and where the one after it begins; null
 * behind the last. Each begins earlier than the one before ends by the length of the longest reading: the service may leave
 * out a reading that crosses the bounds that it is asked for.
 */
export async function nextPiece(
  db: Executor,
  { start, end }: TimeRange,
  { from, width }: RangeProgress,
  { shortest, longest }: Granularity,
  readings: number,
): Promise<{ piece: TimeRange; next: string | null }> {
  const overlap = Math.min(longest, overlapSecondsMax);
  const seconds = Math.max(shortest * readings, overlap) * width;
  const result = await db.execute<TimeRange & { next: string | null } & Record<string, unknown>>(sql`
    select ${isoTime(sql`greatest(whole.from, ${from}::timestamptz - make_interval(secs => ${overlap}))`)} as start,
      ${isoTime(sql`case when is_last then whole.to else cut end`)} as end,
      case when not is_last then ${isoTime(sql`cut`)} end as next
    from (select ${start}::timestamptz as from, ${end}::timestamptz as to) whole,
      lateral (select extract(epoch from whole.to - ${from}::timestamptz)::float8 <= ${seconds}::float8 as is_last) l,
      lateral (select case when not is_last then ${from}::timestamptz + make_interval(secs => ${seconds}) end as cut) c`);
  const [row] = result.rows;
  if (row === undefined) throw new Error('a range without a piece');
  return { piece: { start: row.start, end: row.end }, next: row.next };
}

/**
 * The width of the next piece, after one that held so many readings: a stretch that holds few is gone through in steps that
 * double, so that a range costs what there is in it, however wide an event claims that it is.
 */
export function nextWidth(width: number, held: number, readings: number): number {
  if (held * 2 <= readings) return width * 2;
  return held > readings ? Math.max(1, width / 2) : width;
}

/** Notes that a range of a meter, or all of it, was fetched; events whose readings came late are counted anew. */
export async function noteFetched(
  db: Executor,
  { meterId, start, end }: { readonly meterId: string } & Partial<TimeRange>,
): Promise<void> {
  const fetched = sql`tstzrange(${start ?? null}::timestamptz, ${end ?? null}::timestamptz, '[]')`;
  await db.execute(sql`
    insert into metersync.interval_fetches as f (meter_id, fetched)
    values (${meterId}, tstzmultirange(${fetched}))
    on conflict (meter_id) do update set fetched = f.fetched + excluded.fetched, updated_at = clock_timestamp()`);
  await db.execute(sql`
    update metersync.events e set intervals_found = (${readingsIn(sql`e`)})
    where kind = 'interval' and record_id = ${meterId} and outcome = 'applied' and intervals_found < interval_count
      and tstzrange(range_start, range_end, '[]') <@ ${fetched}`);
}

/** How many readings the warehouse has in the range of an event. */
const readingsIn = (event: SQL): SQL => sql`
  select count(*) from utility.intervals i
  where i.meter_id = ${event}.record_id and i.start_at between ${event}.range_start and ${event}.range_end`;

/** An event whose range shows fewer readings than it told of. */
export interface Shortfall extends Record<string, unknown> {
  readonly id: string;
  readonly told: number;
  readonly found: number;
  /** Whether it is looked at again. */
  readonly waits: boolean;
}

/**
 * Settles the announcements of a meter that the given ranges, read from `readAt` on, cover. Where fewer readings are
 * found than an event told of it waits, and is settled short after some looks. Returns those.
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
  await db.execute(sql`
    update metersync.events e set intervals_found = (${readingsIn(sql`e`)})
    from (
      select range_agg(tstzrange(s::timestamptz, e::timestamptz, '[]')) as spans from unnest(${starts}, ${ends}) as t (s, e)
    ) fetched
    where ${hasOutcome('pending', 'e')} and e.kind = 'interval' and e.record_id = ${meterId}
      and e.recorded_at <= ${readAt}::timestamptz
      and tstzrange(e.range_start, e.range_end, '[]') <@ fetched.spans`);
  // Noted by this read, or by one of before: either way the range was fetched after the event was recorded.
  const counted = sql`${hasOutcome('pending')} and kind = 'interval' and record_id = ${meterId}
    and recorded_at <= ${readAt}::timestamptz and intervals_found is not null`;
  const lacks = sql`coalesce(intervals_found < interval_count, false)`;
  const again = sql`${lacks} and (error_code is distinct from 'READINGS_NOT_SHOWN' or attempts < ${shortfallAttemptsMax})`;
  const message = 'the service shows fewer readings than this event told of';
  const applied = await db.execute<Shortfall & { lacks: boolean }>(sql`
    update metersync.events
    set outcome = 'applied', applied_at = clock_timestamp(), error = null, error_code = null, next_attempt_at = null
    where ${counted} and not (${again})
    returning id, interval_count::float8 as told, intervals_found::float8 as found, false as waits, ${lacks} as lacks`);
  const waiting = await db.execute<Shortfall>(sql`
    update metersync.events set ${postponed({ code: 'READINGS_NOT_SHOWN', message })}
    where ${counted} and ${again} and coalesce(next_attempt_at, '-infinity') <= ${readAt}::timestamptz
    returning id, interval_count::float8 as told, intervals_found::float8 as found, true as waits`);
  const short = [...waiting.rows, ...applied.rows.filter((row) => row.lacks)];
  return {
    applied: applied.rows.length,
    short: short.map(({ id, told, found, waits }) => ({ id, told, found, waits })),
  };
}

/** The company that a meter belongs to, as the meter's row or an event of its intervals says. */
export async function companyOfMeter(
  db: Executor,
  meterId: string,
): Promise<{ companyId: string | null; known: boolean }> {
  const result = await db.execute<{ company_id: string | null; known: boolean }>(sql`
    select
      coalesce(
        (select company_id from utility.meters where id = ${meterId}),
        (select c.id
          from metersync.events e cross join lateral (
            select id from utility.companies where external_id = e.payload ->> 'companyExternalId' offset 0
          ) c
          where e.kind = 'interval' and e.record_id = ${meterId} limit 1)) as company_id,
      exists (select from utility.meters where id = ${meterId}) as known`);
  const row = result.rows[0];
  return { companyId: row?.company_id ?? null, known: row?.known ?? false };
}
