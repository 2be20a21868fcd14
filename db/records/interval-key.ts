import { getTableColumns, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
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
export const startsWithin = (range: ReadRange, table: SQLWrapper): SQL =>
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
            select start_at, usage_units, ${endOf(sql`before`)} as end_at
            from (
                select start_at, granularity_seconds, usage_units
                from ${intervals}
                where meter_id = ${meterId}
                  and start_at < ${time}
                order by start_at desc
                limit 8
              ) before
          ) ended
        where end_at > ${time}
      ) across`;

const startOf = ({ start }: ReadRange): SQL =>
  sql`coalesce(${start ?? null}::timestamptz, '-infinity')`;
const endOfRange = ({ end }: ReadRange): SQL =>
  sql`coalesce(${end ?? null}::timestamptz, 'infinity')`;

/** Formats a time of Postgres in UTC with microseconds. */
export const canonical = (time: SQL): SQL =>
  sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** Whether two readings with the same key differ. */
export const differ = (one: string, other: string): SQL => {
  const of = (reading: string) =>
    `(${reading}.usage, ${reading}.quality, ${reading}.updated, ${reading}.unreadable)`;
  return sql.raw(`${of(one)} is distinct from ${of(other)}`);
};
