import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type SQL, sql } from 'drizzle-orm';
import { from as copyFrom } from 'pg-copy-streams';
import type { Database, Executor, Warehouse } from '../connect.ts';
import { isRefusal, sqlMessage, sqlState, warehouseFailure } from '../failures.ts';
import { copyText, type IntervalColumns } from './interval-text.ts';
import type { WrittenRows } from './page.ts';
import { nothingWritten, type PageWritten, sum } from './write-page.ts';

const uniqueViolation = '23505';
const noPartition = '23514';

/**
 * Writes readings of one meter. Readings of a span that holds none yet go straight in with COPY; others are compared
 * with what is there, and only new and changed rows are written: at the same `updated` the read that began later
 * wins, identical rows are not touched. A reading that Postgres refuses goes to `metersync.rejected_records`.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writeIntervals(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
): Promise<PageWritten> {
  const count = columns.startAt.length;
  if (count === 0) return nothingWritten;
  try {
    const text = copyText(meterId, readAt, columns, warehouse.zoneIsUtc);
    const copied = text !== undefined && (await copyIfFresh(warehouse, meterId, text));
    if (copied) return { inserted: count, changed: 0, rejected: 0 };
    return { ...(await mergeIntervals(warehouse.db, meterId, readAt, columns)), rejected: 0 };
  } catch (error) {
    if (!isRefusal(error)) throw warehouseFailure(error);
    if (count === 1) return await rejectReading(warehouse.db, meterId, columns, sqlMessage(error));
    const middle = Math.ceil(count / 2);
    const first = await writeIntervals(warehouse, meterId, readAt, sliceOf(columns, 0, middle));
    return sum(first, await writeIntervals(warehouse, meterId, readAt, sliceOf(columns, middle, count)));
  }
}

function sliceOf(columns: IntervalColumns, from: number, to: number): IntervalColumns {
  return {
    startAt: columns.startAt.slice(from, to),
    endAt: columns.endAt.slice(from, to),
    granularitySeconds: columns.granularitySeconds.slice(from, to),
    usage: columns.usage.slice(from, to),
    usageUnits: columns.usageUnits.slice(from, to),
    quality: columns.quality.slice(from, to),
    updated: columns.updated.slice(from, to),
  };
}

async function rejectReading(
  db: Database,
  meterId: string,
  columns: IntervalColumns,
  error: string,
): Promise<PageWritten> {
  const reading = Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[0]]));
  const id = `${meterId}@${columns.startAt[0]}`.replaceAll('\0', '\\0').toWellFormed();
  await db.execute(sql`
    insert into metersync.rejected_records as x (resource, record_id, error, record)
    values ('intervals', ${id}, ${error}, ${JSON.stringify(reading)})
    on conflict (resource, record_id) do update set
      error = excluded.error, record = excluded.record, rejected_at = excluded.rejected_at`);
  return { inserted: 0, changed: 0, rejected: 1 };
}

/** Copies the readings in when their span is empty; false when it isn't, or two readings share a key. */
async function copyIfFresh(
  warehouse: Warehouse,
  meterId: string,
  text: { lines: string; from: string; to: string },
): Promise<boolean> {
  const held = await warehouse.db.execute<{ held: boolean }>(sql`
    select exists (select from utility.intervals where meter_id = ${meterId}
      and start_at between metersync.read_time(${text.from}) and metersync.read_time(${text.to})) as held`);
  if (held.rows[0]?.held) return false;
  await ensureMonths(
    warehouse.db,
    sql`metersync.read_time(${text.from})`,
    sql`metersync.read_time(${text.to})`,
  );
  const client = await warehouse.pool.connect();
  try {
    await pipeline(
      Readable.from([text.lines]),
      client.query(
        copyFrom(
          'copy utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, updated, synced_at) from stdin',
        ),
      ),
    );
    return true;
  } catch (error) {
    if (sqlState(error) === uniqueViolation || sqlState(error) === noPartition) return false;
    throw error;
  } finally {
    client.release();
  }
}

async function mergeIntervals(
  db: Database,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
): Promise<WrittenRows> {
  const bounds = sql`(select min(metersync.read_time(s)) as first, max(metersync.read_time(s)) as last
    from unnest(${sql.param(columns.startAt)}::text[]) s)`;
  await ensureMonths(db, sql`(select first from ${bounds} b)`, sql`(select last from ${bounds} b)`);
  const span = await db.execute<{ first: string; last: string }>(bounds);
  const { first, last } = span.rows[0] ?? { first: '', last: '' };
  const result = await db.execute<{ inserted: number; changed: number }>(sql`
    with incoming as materialized (
      select distinct on (start_at, granularity_seconds, usage_units)
        start_at, granularity_seconds, usage_units, usage, quality, updated
      from (
        select metersync.read_time(start_at) as start_at,
          coalesce(granularity, extract(epoch from metersync.read_time(end_at) - metersync.read_time(start_at))::int) as granularity_seconds,
          coalesce(usage_units, '') as usage_units, usage::numeric as usage, quality,
          metersync.read_time(updated) as updated, place
        from unnest(${column(columns.startAt)}, ${column(columns.endAt)},
          ${sql.param(columns.granularitySeconds)}::int[], ${column(columns.usage)}, ${column(columns.usageUnits)},
          ${column(columns.quality)}, ${column(columns.updated)})
          with ordinality as t (start_at, end_at, granularity, usage, usage_units, quality, updated, place)
      ) readings
      order by start_at, granularity_seconds, usage_units, updated desc nulls last, place desc
    ), held as materialized (
      select start_at, granularity_seconds, usage_units, usage, quality, updated, synced_at
      from utility.intervals
      where meter_id = ${meterId} and start_at between ${first}::timestamptz and ${last}::timestamptz
    ), written as (
    insert into utility.intervals as t
      (meter_id, start_at, granularity_seconds, usage_units, usage, quality, updated, synced_at)
    select ${meterId}, i.start_at, i.granularity_seconds, i.usage_units, i.usage, i.quality, i.updated,
      ${readAt}::timestamptz
    from incoming i left join held h using (start_at, granularity_seconds, usage_units)
    where h.start_at is null
      or (i.usage, i.quality, i.updated) is distinct from (h.usage, h.quality, h.updated)
    on conflict (meter_id, start_at, granularity_seconds, usage_units) do update set
      usage = excluded.usage, quality = excluded.quality, updated = excluded.updated, synced_at = excluded.synced_at
    where (excluded.updated > t.updated
        or (excluded.updated = t.updated or excluded.updated is null or t.updated is null)
          and excluded.synced_at >= t.synced_at)
      and (t.usage, t.quality, t.updated) is distinct from (excluded.usage, excluded.quality, excluded.updated)
    returning start_at, granularity_seconds, usage_units
    )
    select count(*) filter (where h.start_at is null)::int as inserted,
      count(*) filter (where h.start_at is not null)::int as changed
    from written left join held h using (start_at, granularity_seconds, usage_units)`);
  return result.rows[0] ?? { inserted: 0, changed: 0 };
}

const column = (values: readonly (string | null)[]): SQL => sql`${sql.param(values)}::text[]`;

async function ensureMonths(db: Executor, first: SQL, last: SQL): Promise<void> {
  await db.execute(sql`
    select metersync.ensure_interval_month(month)
    from generate_series(date_trunc('month', ${first}, 'UTC'), ${last}, interval '1 month') month`);
}
