import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { and, eq, exists, gt, lt, or, type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { from as copyFrom } from 'pg-copy-streams';
import { columnNames, literal, oneRow } from '../connection/arrays.ts';
import type { Executor, Warehouse } from '../connection/connect.ts';
import {
  hasNoPartition,
  isRefusal,
  sqlMessage,
  sqlState,
  warehouseFailure,
} from '../connection/failures.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import {
  mergeIntervals,
  type ReadingsMerged,
  type ReadingsToWrite,
} from '../hot/merge-intervals.ts';
import { intervals } from '../schema/utility.ts';
import { columnsCopied, type ReadRange, type Span, startsWithin } from './interval-key.ts';
import { ensureMonths } from './interval-months.ts';
import { inRegion, joined, regionBetween, spanOf, spanOfPlain } from './interval-span.ts';
import {
  copyText,
  type IntervalColumns,
  type PlainReadings,
  plainReadings,
  readingsAt,
  readReadings,
  unreadableValues,
} from './interval-text.ts';
import { rejectReadings } from './rejected-readings.ts';
import { nothingWritten, type PageWritten, sum } from './write-page.ts';

const uniqueViolation = '23505';

/** How readings are written. */
export interface WriteIntervals {
  /**
   * Whether an event caused the read. Then unchanged readings without `updated` count as read now,
   * so that an earlier read that is written later does not replace them.
   */
  readonly confirms?: boolean;
  /** The range that the readings are listed for. */
  readonly range?: ReadRange;
  /** The span that earlier writes of the same walk covered. */
  readonly after?: Span | undefined;
}

export interface ReadingsWritten extends PageWritten {
  /** The span of this and earlier writes of the walk; undefined if nothing could be written. */
  readonly span: Span | undefined;
  /**
   * Whether the listing may contradict the warehouse, because a reading in the region is not listed
   * or is newer, or readings overlap earlier readings of the walk. Then only a comparison with the
   * complete listing can tell which readings have to be removed.
   */
  readonly inDoubt: boolean;
}

/**
 * Writes readings of one meter. Plain readings whose region is empty are inserted with COPY; others
 * are compared with the existing rows, and written if they are new or changed. At the same
 * `updated`, or if the stored state is dated in the future, the read that began later wins. A value
 * that cannot be read is NULL, and `unreadable` has its text. A reading without a usable start or
 * length goes to `metersync.rejected_records`. Nothing is removed here: see `removeAbsentReadings`.
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
        // Postgres refused a value, perhaps a plain time that does not exist.
        if (!isRefusal(error)) throw error;
        return writeRead(warehouse, meterId, readAt, columns, how, true);
      },
    );
  } catch (error) {
    throw warehouseFailure(error);
  }
}

/**
 * Writes the readings that can be read. If Postgres refuses a reading that passed the check, the
 * reading is stored separately with `strictly`; without it, the error is thrown.
 */
async function writeRead(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  given: IntervalColumns,
  { after, range = {}, confirms = false }: WriteIntervals,
  strictly: boolean,
): Promise<ReadingsWritten> {
  const { db, zoneIsUtc } = warehouse;
  const { columns, plain, wrong, right } = readReadings(given, zoneIsUtc, strictly);
  let span = after;
  let inDoubt = false;
  const writePart = async (places: readonly number[]): Promise<PageWritten> => {
    if (places.length === 0) return nothingWritten;
    const all = places.length === given.startAt.length;
    const some = all ? columns : readingsAt(columns, places);
    const ofPart = all ? plain : plainReadings(some, zoneIsUtc);
    const own = ofPart === undefined ? await spanOf(db, some) : spanOfPlain(ofPart);
    const region = regionBetween(own, span);
    const part = { meterId, readAt, columns: some, plain: ofPart, region, range, confirms };
    const { doubtful, ...written } = await copyOrMerge(warehouse, part).catch((error: unknown) => {
      if (!hasNoPartition(error)) throw error;
      // The partition of a month that was known to exist has been dropped.
      warehouse.intervalMonths.clear();
      return copyOrMerge(warehouse, part);
    });
    inDoubt ||= doubtful || region.overlaps;
    span = joined(own, span);
    const unreadable = unreadableValues(some);
    return { ...nothingWritten, ...written, ...(unreadable > 0 ? { unreadable } : {}) };
  };
  const written = strictly
    ? await splitOnRefusal(right, writePart, (place, error) =>
        rejectReadings(db, meterId, given, new Map([[place, sqlMessage(error)]])),
      )
    : [await writePart(right)];
  const rejected = await rejectReadings(db, meterId, given, wrong);
  return { ...written.reduce(sum, rejected), span, inDoubt };
}

/** Copies readings into their region if it is empty; otherwise merges them with its rows. */
async function copyOrMerge(warehouse: Warehouse, part: ReadingsToWrite): Promise<ReadingsMerged> {
  const { meterId, columns, plain, region } = part;
  if (plain?.distinct === true && columns.unreadable === undefined) {
    const [held] = await warehouse.db
      .select({ startAt: intervals.startAt })
      .from(intervals)
      .where(inRegion(meterId, region))
      .limit(1);
    if (held === undefined && (await copy(warehouse, part, plain)))
      return { inserted: columns.startAt.length, changed: 0, doubtful: false };
  }
  await ensureMonths(warehouse, columns, plain !== undefined);
  return await mergeIntervals(warehouse.db, part);
}

const copyStatement = new PgDialect().sqlToQuery(
  sql`copy ${intervals} (${columnNames(columnsCopied)}) from stdin`,
).sql;

/** Copies readings into an empty region; false if somebody wrote the same readings meanwhile. */
async function copy(
  warehouse: Warehouse,
  { meterId, readAt, columns }: ReadingsToWrite,
  { seconds }: PlainReadings,
): Promise<boolean> {
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

/**
 * Whether the warehouse has readings that start within a range but outside the span that its
 * listing covered. Readings that a later read wrote do not count.
 */
export async function hasReadingsOutside(
  db: Executor,
  { meterId, range, readAt }: { meterId: string; range: ReadRange; readAt: string },
  covered: Span | undefined,
): Promise<boolean> {
  const { startAt, syncedAt } = intervals;
  const has = (where?: SQL): SQL =>
    exists(
      db
        .select({ startAt })
        .from(intervals)
        .where(
          and(
            eq(intervals.meterId, meterId),
            where,
            lt(syncedAt, readAt),
            startsWithin(range, intervals),
          ),
        )
        .offset(literal(0)),
    );
  const outside =
    covered === undefined
      ? has()
      : or(has(lt(startAt, covered.first)), has(gt(startAt, covered.last)));
  const [found] = await db.select({ outside: sql<boolean>`${outside}` }).from(oneRow);
  return found?.outside === true;
}
