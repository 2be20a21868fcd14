import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { from as copyFrom } from 'pg-copy-streams';
import { columnNames } from '../connection/arrays.ts';
import type { Executor, Warehouse } from '../connection/connect.ts';
import {
  hasNoPartition,
  isRefusal,
  sqlMessage,
  sqlState,
  warehouseFailure,
} from '../connection/failures.ts';
import { hot } from '../connection/hot.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import { intervals } from '../schema/utility.ts';
import {
  columnsCopied,
  columnsOfReading,
  differ,
  type ReadRange,
  readingKey,
  type Span,
  startsWithin,
} from './interval-key.ts';
import { ensureMonths } from './interval-months.ts';
import { anyReadings, distinctReadings } from './interval-rows.ts';
import { joined, type Region, regionBetween, spanOf, spanOfPlain } from './interval-span.ts';
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
import { rejectReadings } from './rejected-readings.ts';
import { nothingWritten, type PageWritten, sum } from './write-page.ts';

const uniqueViolation = '23505';

/** How readings are written. */
export interface WriteIntervals {
  /**
   * Whether the readings are read because of an event. Then unchanged readings without `updated` also count
   * as read now, so that an earlier read that is written later replaces none of them.
   */
  readonly confirms?: boolean;
  /** The range that the readings are listed for. */
  readonly range?: ReadRange;
  /** What earlier writes of the same walk covered. */
  readonly after?: Span | undefined;
}

export interface ReadingsWritten extends PageWritten {
  /** What this and the earlier writes of the walk cover; undefined if no reading could be written. */
  readonly span: Span | undefined;
  /**
   * Whether the listing may contradict the warehouse: the warehouse has a reading among these that is not
   * listed, or that the service changed later, or these readings lie among the earlier ones. Then only a
   * comparison with the complete listing can tell which readings have to be removed.
   */
  readonly inDoubt: boolean;
}

/**
 * Writes readings of one meter. Readings of an empty span are copied in with COPY. Others are compared with
 * existing rows, and only new and changed readings are written. With the same `updated`, and over a state
 * from the future, the read that began later wins. A value that cannot be read is NULL, and `unreadable` has
 * its text. A reading without a usable start or length goes to `metersync.rejected_records`. Nothing is
 * removed here: see `removeAbsentReadings`.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writeIntervals(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
  how: WriteIntervals = {},
): Promise<ReadingsWritten> {
  if (columns.startAt.length === 0) return { ...nothingWritten, span: how.after, inDoubt: false };
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

/**
 * Writes the readings that can be read. Readings that pass the check and that Postgres still refuses are
 * stored separately.
 */
async function writeRead(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  given: IntervalColumns,
  how: WriteIntervals,
  strictly: boolean,
): Promise<ReadingsWritten> {
  const { db, zoneIsUtc } = warehouse;
  const { columns, plain, wrong, right } = readReadings(given, zoneIsUtc, strictly);
  let span = how.after;
  let inDoubt = false;
  const writePart = async (part: readonly number[]): Promise<PageWritten> => {
    if (part.length === 0) return nothingWritten;
    const all = part.length === given.startAt.length;
    const some = all ? columns : readingsAt(columns, part);
    const ofPart = all ? plain : plainReadings(some, zoneIsUtc);
    const own = ofPart === undefined ? await spanOf(db, some) : spanOfPlain(ofPart);
    const region = regionBetween(own, span);
    const put = { meterId, readAt, columns: some, plain: ofPart, region, how };
    const { doubtful, ...written } = await writeTogether(warehouse, put);
    inDoubt ||= doubtful || region.overlaps;
    span = joined(own, span);
    return written;
  };
  const written = strictly
    ? await splitOnRefusal(right, writePart, (place, error) =>
        rejectReadings(db, meterId, given, new Map([[place, sqlMessage(error)]])),
      )
    : [await writePart(right)];
  const rejected = await rejectReadings(db, meterId, given, wrong);
  return { ...written.reduce(sum, rejected), span, inDoubt };
}

/** The readings of one write, and what it needs to know of them. */
interface Put {
  readonly meterId: string;
  readonly readAt: string;
  readonly columns: IntervalColumns;
  readonly plain: PlainReadings | undefined;
  readonly region: Region;
  readonly how: WriteIntervals;
}

type Merged = PageWritten & { readonly doubtful: boolean };

async function writeTogether(warehouse: Warehouse, put: Put, lookedAgain = false): Promise<Merged> {
  const { columns, plain } = put;
  try {
    const isPlain = plain?.distinct === true && columns.unreadable === undefined;
    if (isPlain && (await copyIfFresh(warehouse, put, plain)))
      return { ...nothingWritten, inserted: columns.startAt.length, doubtful: false };
    const unreadable = unreadableValues(columns);
    const counts = unreadable > 0 ? { ...nothingWritten, unreadable } : nothingWritten;
    return { ...counts, ...(await mergeIntervals(warehouse, put)) };
  } catch (error) {
    if (!hasNoPartition(error) || lookedAgain) throw error;
    // Someone dropped the partition of a month noted as existing.
    warehouse.intervalMonths.clear();
    return await writeTogether(warehouse, put, true);
  }
}

const copyStatement = new PgDialect().sqlToQuery(
  sql`copy ${intervals} (${columnNames(columnsCopied)}) from stdin`,
).sql;

/** Copies readings into an empty region; returns false if it is not empty, or no longer. */
async function copyIfFresh(
  warehouse: Warehouse,
  { meterId, readAt, columns, region }: Put,
  { seconds }: PlainReadings,
): Promise<boolean> {
  const held = await hot(warehouse.db, 'readingsHeld').execute<{ held: boolean }>(sql`
    select exists (
      select from ${intervals}
      where ${inRegion(meterId, region)}
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

const inRegion = (meterId: string, { first, last, edge }: Region): SQL => sql`meter_id = ${meterId}
        and start_at between ${first}::timestamptz and ${last}::timestamptz
        and start_at is distinct from ${edge}::timestamptz`;

/** Compares readings with existing rows, and writes new and changed ones. */
async function mergeIntervals(
  warehouse: Warehouse,
  { meterId, readAt, columns, plain, region, how: { confirms = false, range = {} } }: Put,
): Promise<WrittenRows & { readonly doubtful: boolean }> {
  await ensureMonths(warehouse, columns, plain !== undefined);
  const incoming = plain?.distinct
    ? distinctReadings(columns, plain.seconds)
    : anyReadings(columns);
  const result = await hot(warehouse.db, 'mergeIntervals').execute<{
    inserted: number;
    changed: number;
    doubtful: boolean;
  }>(sql`
    with incoming as materialized (${incoming}
    ), held as materialized (
      select ${readingKey}, usage, quality, updated, unreadable, synced_at
      from ${intervals}
      where ${inRegion(meterId, region)}
    ), paired as materialized (
      select
        ${readingKey},
        i.ordinal is not null as is_listed,
        i.usage,
        i.quality,
        i.updated,
        i.unreadable,
        h.synced_at as held_since,
        ${differ('i', 'h')} as differs
      from held h
        full join incoming i using (${readingKey})
      where i.ordinal is null
        or h.synced_at is null
        or ${differ('i', 'h')}
        or (${confirms} and i.updated is null)
    ), written as (
      insert into ${intervals} as t (${columnNames(columnsOfReading)})
      select
        ${meterId},
        ${readingKey},
        usage,
        quality,
        updated,
        ${readAt}::timestamptz,
        unreadable
      from paired
      where is_listed
      on conflict (meter_id, ${readingKey}) do update set
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
      returning ${readingKey}
    )
    select
      count(w.ordinal) filter (where p.held_since is null)::int as inserted,
      count(w.ordinal) filter (where p.held_since is not null and p.differs)::int as changed,
      coalesce(bool_or(
        p.held_since < ${readAt}::timestamptz
        and ${startsWithin(range, sql`p`)}
        and (not p.is_listed or w.ordinal is null and p.differs)
      ), false) as doubtful
    from paired p
      left join written w using (${readingKey})`);
  return result.rows[0] ?? { inserted: 0, changed: 0, doubtful: false };
}

/**
 * Whether the warehouse has readings that start within a range, but not within what its listing
 * covered, and that no later read brought.
 */
export async function hasReadingsOutside(
  db: Executor,
  { meterId, range, readAt }: { meterId: string; range: ReadRange; readAt: string },
  covered: Span | undefined,
): Promise<boolean> {
  const has = (where: SQL): SQL => sql`exists (
        select
        from ${intervals} i
        where i.meter_id = ${meterId}
          and ${where}
          and i.synced_at < ${readAt}::timestamptz
          and ${startsWithin(range, sql`i`)}
        offset 0
      )`;
  const outside =
    covered === undefined
      ? has(sql`true`)
      : sql`${has(sql`i.start_at < ${covered.first}::timestamptz`)}
      or ${has(sql`i.start_at > ${covered.last}::timestamptz`)}`;
  const { rows } = await hot(db, 'readingsOutside').execute<{ outside: boolean }>(
    sql`select ${outside} as outside`,
  );
  return rows[0]?.outside === true;
}
