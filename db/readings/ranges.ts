import { getTableColumns, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor, Warehouse } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { intervalFetches, intervalReads } from '../schema/reads.ts';
import { intervals } from '../schema/utility.ts';

/** A requested range of a meter's readings, in ISO times; a side without a time has no bound. */
export interface ReadRange {
  readonly start?: string | undefined;
  readonly end?: string | undefined;
}

/** The columns of a reading. */
export const columnsOfReading = Object.values(getTableColumns(intervals));
/** The columns to copy if keys are distinct and values readable; others have their defaults. */
export const columnsCopied = columnsOfReading.filter(
  (column) => column !== intervals.ordinal && column !== intervals.unreadable,
);

/** `readingKey` is unique within a meter; several readings may have the same `timeKey`. */
export const timeKey = sql.raw('start_at, granularity_seconds, usage_units');
export const readingKey = sql.raw('start_at, granularity_seconds, usage_units, ordinal');

/** The key of a reading in a table as text. An audit shows it after the id of the meter. */
export const keyAsText = (table: SQLWrapper): SQL => {
  const { startAt, granularitySeconds, usageUnits, ordinal } = intervals;
  const [start, seconds, units, place] = [startAt, granularitySeconds, usageUnits, ordinal].map(
    ({ name }) => sql`${table}.${sql.identifier(name)}`,
  );
  return sql`'@' || ${start} || '/' || ${seconds} || '/' || ${units}
      || case when ${place} = 0 then '' else '/' || ${place} end`;
};

/** When a reading of a table ends. */
export const endOf = (table: SQLWrapper): SQL =>
  sql`${table}.start_at + make_interval(secs => ${table}.granularity_seconds)`;

/** Whether a reading of a table starts within a range. An index can serve both bounds. */
const startsWithin = (range: ReadRange, table: SQLWrapper): SQL =>
  sql`${table}.start_at >= ${startOf(range)} and ${table}.start_at < ${endOfRange(range)}`;

/** Whether a reading lies within a range: a listing need not show readings across its bounds. */
export const liesWithin = (range: ReadRange, table: SQLWrapper): SQL =>
  sql`${startsWithin(range, table)} and ${endOf(table)} <= ${endOfRange(range)}`;

/**
 * The readings `across (start_at, usage_units, end_at)` of a meter that begin before a time and end after it. Looks
 * at a few: readings of one meter seldom have more than two lengths.
 */
export const readingsAcross = (meterId: SQLWrapper | string, time: SQLWrapper): SQL => sql`(
        select start_at, usage_units, end_at
        from (
            select start_at, usage_units, ${endOf(sql`i`)} as end_at
            from ${intervals} i
            where meter_id = ${meterId} and start_at < ${time}
            order by start_at desc
            limit 8
          ) before
        where end_at > ${time}
      ) across`;

const startOf = ({ start }: ReadRange): SQL =>
  sql`coalesce(${start ?? null}::timestamptz, '-infinity')`;
const endOfRange = ({ end }: ReadRange): SQL =>
  sql`coalesce(${end ?? null}::timestamptz, 'infinity')`;

/** Whether two readings with the same key differ. */
export const differ = (one: string, other: string): SQL => {
  const of = (reading: string) =>
    `(${reading}.usage, ${reading}.quality, ${reading}.updated, ${reading}.unreadable)`;
  return sql.raw(`${of(one)} is distinct from ${of(other)}`);
};

/** A time as ISO text in UTC, with microseconds. */
export const isoTime = (time: SQLWrapper) =>
  sql<string>`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

export const daySeconds = 86_400;

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

/**
 * How long the reads of a meter are remembered. A read that took longer is thrown away, because nothing tells what
 * later reads did not show.
 */
const remembered = sql.raw(`interval '1 day'`);

/**
 * Until the transaction ends, nobody else changes the readings of a meter. Returns false if a read that began at
 * `readAt` is too old to be written.
 */
export async function lockReadings(
  tx: Executor,
  meterId: string,
  readAt: string | null = null,
): Promise<boolean> {
  const [locked] = await tx
    .insert(intervalFetches)
    .values({ meterId, fetched: '{}' })
    .onConflictDoUpdate({
      target: intervalFetches.meterId,
      set: { fetched: sql`${intervalFetches.fetched}` },
    })
    .returning({
      expired: sql<boolean>`coalesce(clock_timestamp() - ${readAt}::timestamptz > ${remembered}, false)`,
    });
  return locked?.expired !== true;
}

/**
 * Notes that a range of a meter's readings was read to its proved end, so that no read that began earlier brings
 * back what this one did not show. Recounts events with too few readings.
 */
export async function noteRead(
  tx: Executor,
  { meterId, range }: { readonly meterId: string; readonly range: ReadRange },
  readAt: string,
): Promise<void> {
  const [start, end] = [range.start ?? null, range.end ?? null];
  const span = sql`tstzrange(${start}::timestamptz, ${end}::timestamptz)`;
  const fetched = sql`tstzrange(${start}::timestamptz, ${end}::timestamptz, '[]')`;
  const isShort = sql`record_id = ${meterId}
          and lacking is not null
          and tstzrange(range_start, range_end, '[]') <@ ${fetched}`;
  const { rows } = await tx.execute<{ short: boolean }>(sql`
    with forgotten as (
      delete from ${intervalReads}
      where meter_id = ${meterId}
        and began < clock_timestamp() - ${remembered}
        and span <> ${span}
    ), remembered as (
      insert into ${intervalReads} as r (meter_id, span, began)
      select ${meterId}, ${span}, ${readAt}::timestamptz
      on conflict (meter_id, span) do update set began = greatest(r.began, excluded.began)
    )
    update ${intervalFetches} set
      fetched = fetched + tstzmultirange(${fetched}),
      updated_at = clock_timestamp()
    where meter_id = ${meterId}
    returning exists (select from ${journal} where ${isShort}) as short`);
  if (rows[0]?.short !== true) return;
  await tx.execute(sql`
    update ${journal} set intervals_found = ${readingsIn(sql`${journal}`)}
    where id = any(array(
        select id from ${journal} where ${isShort} for no key update skip locked
      ))`);
}

/** Deletes reads that are not remembered any more, of meters that nobody read since. Returns how many. */
export async function forgetReads(db: Executor, limit: number): Promise<number> {
  const { rowCount } = await db.execute(sql`
    delete from ${intervalReads}
    where (meter_id, span) in (
        select meter_id, span
        from ${intervalReads}
        where began < clock_timestamp() - ${remembered}
        limit ${limit}
      )`);
  return rowCount ?? 0;
}

/**
 * Counts the readings that the warehouse has in the range of an event, with those that begin before it and end
 * in it or later.
 */
export const readingsIn = (event: SQL): SQL => sql`(
          (
            select count(*)
            from ${intervals} i
            where i.meter_id = ${event}.record_id
              and i.start_at between ${event}.range_start and ${event}.range_end
          ) + (
            select count(*)
            from ${readingsAcross(sql`${event}.record_id`, sql`${event}.range_start`)}
          )
        )`;

/** Creates missing partitions for months, such as `2026-01`; known months need no statement. */
export async function ensureMonths(
  { db, intervalMonths }: Warehouse,
  months: ReadonlySet<string>,
): Promise<void> {
  const unknown = [...months].filter((month) => !intervalMonths.has(month));
  if (unknown.length === 0) return;
  const starts = unknown.map((month) => `${month}-01T00:00:00Z`);
  await makeMonths(db, sql`unnest(${array(starts, 'timestamptz')}) as t (start_at)`);
  for (const month of unknown) intervalMonths.add(month);
}

/** Creates the partitions of the months in which the times `start_at` of a table lie. */
export async function makeMonths(db: Executor, starts: SQL): Promise<void> {
  const months = db
    .selectDistinct({ month: sql`date_trunc('month', start_at, 'UTC')`.as('month') })
    .from(starts)
    .orderBy(sql`month`)
    .as('months');
  await db.select({ made: sql`metersync.ensure_interval_month(month)` }).from(months);
}
