import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { from as copyFrom } from 'pg-copy-streams';
import { array, columnNames } from '../arrays.ts';
import type { Database, Executor, Warehouse } from '../connect.ts';
import { hasNoPartition, isRefusal, sqlMessage, sqlState, warehouseFailure } from '../failures.ts';
import { intervals } from '../schema/utility.ts';
import { splitOnRefusal } from '../split-on-refusal.ts';
import {
  copyText,
  type IntervalColumns,
  type PlainReadings,
  plainReadings,
  readingsAt,
  readReadings,
  unreadableValues,
} from './interval-text.ts';
import type { WrittenRows } from './page.ts';
import { type RejectedRecord, readingOf, rejectRecords } from './rejected-records.ts';
import { nothingWritten, type PageWritten, sum } from './write-page.ts';

const uniqueViolation = '23505';

/** How readings are written. */
export interface WriteIntervals {
  /**
   * Whether the readings are read because of an event. Then unchanged readings without `updated`
   * also count as read now: an earlier read that is written later replaces none of them.
   */
  readonly confirms?: boolean;
}

/**
 * Writes readings of one meter. Readings of an empty span are copied in with COPY. Others are
 * compared with existing rows, and only new and changed ones are written: at the same `updated` the
 * read that began later wins, and over one from the future. A value that cannot be read is NULL, and
 * `unreadable` has its text. A reading without a usable start or length goes to
 * `metersync.rejected_records`.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writeIntervals(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
  how: WriteIntervals = {},
): Promise<PageWritten> {
  if (columns.startAt.length === 0) return nothingWritten;
  try {
    return await writeRead(warehouse, meterId, readAt, columns, how, false).catch(
      (error: unknown) => {
        // A plain time that does not exist.
        if (!isRefusal(error)) throw error;
        return writeRead(warehouse, meterId, readAt, columns, how, true);
      },
    );
  } catch (error) {
    throw warehouseFailure(error);
  }
}

/** Writes what can be read. Judged strictly, readings that Postgres refuses all the same are kept apart. */
async function writeRead(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  given: IntervalColumns,
  how: WriteIntervals,
  strictly: boolean,
): Promise<PageWritten> {
  const { db, zoneIsUtc } = warehouse;
  const { columns, plain, wrong, right } = readReadings(given, zoneIsUtc, strictly);
  const writePart = async (part: readonly number[]): Promise<PageWritten> => {
    const all = part.length === given.startAt.length;
    const some = all ? columns : readingsAt(columns, part);
    const somePlain = all ? plain : plainReadings(some, zoneIsUtc);
    return await writeTogether(warehouse, meterId, readAt, some, somePlain, how);
  };
  const written = strictly
    ? await splitOnRefusal(right, writePart, (place, error) =>
        rejectReadings(db, meterId, given, new Map([[place, sqlMessage(error)]])),
      )
    : [await writePart(right)];
  return written.reduce(sum, await rejectReadings(db, meterId, given, wrong));
}

async function writeTogether(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
  plain: PlainReadings | undefined,
  how: WriteIntervals,
  lookedAgain = false,
): Promise<PageWritten> {
  const count = columns.startAt.length;
  if (count === 0) return nothingWritten;
  try {
    const copied =
      plain?.distinct &&
      columns.unreadable === undefined &&
      (await copyIfFresh(warehouse, meterId, readAt, columns, plain));
    if (copied) return { inserted: count, changed: 0, rejected: 0 };
    const merged = await mergeIntervals(warehouse, meterId, readAt, columns, plain, how);
    const unreadable = unreadableValues(columns);
    return { ...merged, rejected: 0, ...(unreadable > 0 ? { unreadable } : {}) };
  } catch (error) {
    if (!hasNoPartition(error) || lookedAgain) throw error;
    // Someone dropped the partition of a month noted as existing.
    warehouse.intervalMonths.clear();
    return await writeTogether(warehouse, meterId, readAt, columns, plain, how, true);
  }
}

/** Stores refused readings, each by its place and with the reason. */
async function rejectReadings(
  db: Database,
  meterId: string,
  columns: IntervalColumns,
  wrong: ReadonlyMap<number, string>,
): Promise<PageWritten> {
  if (wrong.size === 0) return nothingWritten;
  const rejected = [...wrong].map(([place, error]): RejectedRecord => {
    const reading = Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, values?.[place]]),
    );
    const id = readingOf(meterId, columns.startAt[place] ?? '');
    return { resource: 'intervals', companyId: null, id, error, text: JSON.stringify(reading) };
  });
  await rejectRecords(db, rejected);
  return { ...nothingWritten, rejected: rejected.length };
}

/** The columns of a reading, and below the names of its key. */
const columnsOfReading = [
  intervals.meterId,
  intervals.startAt,
  intervals.granularitySeconds,
  intervals.usageUnits,
  intervals.usage,
  intervals.quality,
  intervals.updated,
  intervals.syncedAt,
];
const mergedColumns = [...columnsOfReading, intervals.unreadable];
const key = sql.raw('start_at, granularity_seconds, usage_units');

/** The key of a reading in a table as text: after its meter, the id of the reading in an audit. */
export const keyAsText = (table: SQLWrapper): SQL => {
  const { startAt, granularitySeconds, usageUnits } = intervals;
  const [start, seconds, units] = [startAt, granularitySeconds, usageUnits].map(
    ({ name }) => sql`${table}.${sql.identifier(name)}`,
  );
  return sql`'@' || ${start} || '/' || ${seconds} || '/' || ${units}`;
};

const copyStatement = new PgDialect().sqlToQuery(
  sql`copy ${intervals} (${columnNames(columnsOfReading)}) from stdin`,
).sql;

/** Copies readings into an empty span; returns false if it is not empty, or no longer. */
async function copyIfFresh(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
  { seconds, from, to }: PlainReadings,
): Promise<boolean> {
  const held = await warehouse.db.execute<{ held: boolean }>(sql`
    select exists (
      select from ${intervals}
      where meter_id = ${meterId}
        and start_at between metersync.read_time(${from}) and metersync.read_time(${to})
    ) as held`);
  if (held.rows[0]?.held) return false;
  await ensureMonths(warehouse, columns, true);
  const client = await warehouse.pool.connect();
  try {
    await pipeline(
      Readable.from([copyText(meterId, readAt, columns, seconds)]),
      client.query(copyFrom(copyStatement)),
    );
    return true;
  } catch (error) {
    if (sqlState(error) === uniqueViolation) return false;
    throw error;
  } finally {
    client.release();
  }
}

/** Readings whose times Postgres has to parse, and of which two may share a key. */
export function anyReadings(columns: IntervalColumns): SQL {
  return sql`
      select distinct on (${key}) ${key}, usage, quality, updated, unreadable::jsonb
      from unnest(
          ${array(columns.startAt, 'text')},
          ${array(columns.endAt, 'text')},
          ${array(columns.granularitySeconds, 'int')},
          ${array(columns.usage, 'numeric')},
          ${array(columns.usageUnits, 'text')},
          ${array(columns.quality, 'text')},
          ${array(columns.updated, 'text')},
          ${array(columns.unreadable ?? [], 'text')}
        ) with ordinality
          as t (starts, ends, granularity, usage, units, quality, changed, unreadable, place)
        cross join lateral (
          select
            metersync.read_time(starts) as start_at,
            metersync.read_time(changed) as updated,
            coalesce(units, '') as usage_units
        ) times
        cross join lateral (
          select coalesce(
            granularity,
            extract(epoch from metersync.read_time(ends) - start_at)::int
          ) as granularity_seconds
        ) lengths
      order by ${key}, updated desc nulls last, place desc`;
}

function distinctReadings(columns: IntervalColumns, seconds: readonly number[]): SQL {
  return sql`
      select
        start_at,
        granularity_seconds,
        coalesce(usage_units, '') as usage_units,
        usage,
        quality,
        updated,
        unreadable::jsonb
      from unnest(
        ${array(columns.startAt, 'timestamptz')},
        ${array(seconds, 'int')},
        ${array(columns.usageUnits, 'text')},
        ${array(columns.usage, 'numeric')},
        ${array(columns.quality, 'text')},
        ${array(columns.updated, 'timestamptz')},
        ${array(columns.unreadable ?? [], 'text')}
      ) as t (${key}, usage, quality, updated, unreadable)`;
}

/** Returns the first and the last start of readings, as Postgres parses them. */
async function spanOf(
  db: Executor,
  columns: IntervalColumns,
): Promise<{ from: string; to: string }> {
  const result = await db.execute<{ from: string; to: string }>(sql`
    select min(at)::text as from, max(at)::text as to
    from unnest(${array(columns.startAt, 'text')}) s
      cross join lateral (select metersync.read_time(s) as at) times`);
  return result.rows[0] ?? { from: '', to: '' };
}

/** Whether two readings of one key differ. */
const differ = (one: string, other: string): SQL => {
  const of = (reading: string) =>
    `(${reading}.usage, ${reading}.quality, ${reading}.updated, ${reading}.unreadable)`;
  return sql.raw(`${of(one)} is distinct from ${of(other)}`);
};

/** Compares readings with existing rows, and writes new and changed ones. */
async function mergeIntervals(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
  plain: PlainReadings | undefined,
  { confirms = false }: WriteIntervals,
): Promise<WrittenRows> {
  const { from, to } = plain ?? (await spanOf(warehouse.db, columns));
  await ensureMonths(warehouse, columns, plain !== undefined);
  const incoming = plain?.distinct
    ? distinctReadings(columns, plain.seconds)
    : anyReadings(columns);
  const result = await warehouse.db.execute<{ inserted: number; changed: number }>(sql`
    with incoming as materialized (${incoming}
    ), held as materialized (
      select ${key}, usage, quality, updated, unreadable, synced_at
      from ${intervals}
      where meter_id = ${meterId}
        and start_at between ${from}::timestamptz and ${to}::timestamptz
    ), written as (
      insert into ${intervals} as t (${columnNames(mergedColumns)})
      select
        ${meterId},
        ${key},
        i.usage,
        i.quality,
        i.updated,
        ${readAt}::timestamptz,
        i.unreadable
      from incoming i
        left join held h using (${key})
      where h.synced_at is null
        or ${differ('i', 'h')}
        or (${confirms} and i.updated is null)
      on conflict (meter_id, ${key}) do update set
        usage = excluded.usage,
        quality = excluded.quality,
        updated = excluded.updated,
        synced_at = excluded.synced_at,
        unreadable = excluded.unreadable
      where (
          excluded.updated > t.updated
          or (excluded.updated = t.updated or excluded.updated is null or t.updated is null)
            and excluded.synced_at >= t.synced_at
          -- A state from the future: the service's clock was wrong.
          or t.updated > excluded.synced_at + interval '1 day'
            and excluded.synced_at >= t.synced_at
        ) and (
          ${differ('t', 'excluded')}
          or (${confirms} and excluded.updated is null)
        )
      returning ${key}, usage, quality, updated, unreadable
    )
    select
      count(*) filter (where h.synced_at is null)::int as inserted,
      count(*) filter (where h.synced_at is not null and ${differ('w', 'h')})::int as changed
    from written w
      left join held h using (${key})`);
  return result.rows[0] ?? { inserted: 0, changed: 0 };
}

/**
 * Creates the partitions of the months in which readings start. Plain times begin with their month,
 * so partitions known to exist are not created again.
 */
async function ensureMonths(
  warehouse: Warehouse,
  columns: IntervalColumns,
  plain: boolean,
): Promise<void> {
  const { db, intervalMonths } = warehouse;
  const months = plain
    ? new Set(columns.startAt.map((start) => start.slice(0, 7)))
    : new Set<string>();
  const unknown = [...months].filter((month) => !intervalMonths.has(month));
  const starts = plain ? unknown.map((month) => `${month}-01T00:00:00Z`) : columns.startAt;
  if (starts.length === 0) return;
  await db.execute(sql`
    select metersync.ensure_interval_month(month)
    from (
      select distinct date_trunc('month', metersync.read_time(s), 'UTC') as month
      from unnest(${array(starts, 'text')}) s
      order by month
    ) months`);
  for (const month of unknown) intervalMonths.add(month);
}
