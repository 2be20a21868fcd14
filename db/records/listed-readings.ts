import { and, between, count, eq, lte, type SQL, sql } from 'drizzle-orm';
import { check, integer, jsonb, numeric, pgTable, text } from 'drizzle-orm/pg-core';
import type { Executor, Transaction, Warehouse } from '../connection/connect.ts';
import { sqlMessage } from '../connection/failures.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import { createTempTable } from '../connection/temp-table.ts';
import { time } from '../schema/columns.ts';
import { intervals } from '../schema/utility.ts';
import {
  canonical,
  differ,
  endOf,
  ordinalOf,
  type ReadRange,
  startsWithin,
  timeKey,
} from './interval-key.ts';
import { makeMonths } from './interval-months.ts';
import { parsed, parsedReadings } from './interval-rows.ts';
import { type IntervalColumns, readingsAt, readReadings } from './interval-text.ts';
import type { WrittenRows } from './page.ts';
import { refusalsOf } from './rejected-readings.ts';
import type { RejectedRecord } from './rejected-records.ts';

/** The temporary table of the readings that a pass over a listing showed. */
const listedReadings = pgTable(
  'listed_readings',
  {
    startAt: time('start_at').notNull(),
    granularitySeconds: integer('granularity_seconds').notNull(),
    usageUnits: text('usage_units'),
    usage: numeric('usage'),
    quality: text('quality'),
    updated: time('updated'),
    unreadable: jsonb('unreadable'),
    id: text('id'),
  },
  () => [check('listed_readings_have_a_length', sql`granularity_seconds > 0`)],
);

/** Creates the table that has the readings of a pass until the transaction ends. */
export const makeListedReadings = (tx: Executor): Promise<void> =>
  createTempTable(tx, listedReadings);

/** Adds a page's readings to the table; returns readings that no row can hold or Postgres refuses. */
export async function addListedReadings(
  tx: Transaction,
  { zoneIsUtc }: Pick<Warehouse, 'zoneIsUtc'>,
  meterId: string,
  given: IntervalColumns,
): Promise<RejectedRecord[]> {
  const { columns, wrong, right } = readReadings(given, zoneIsUtc, true);
  const refused = new Map(wrong);
  await splitOnRefusal<number, unknown>(
    right,
    (places) =>
      tx.transaction((inner) =>
        inner
          .insert(listedReadings)
          .select((query) =>
            query.select(parsed).from(parsedReadings(readingsAt(columns, places))),
          ),
      ),
    (place, error) => {
      refused.set(place, sqlMessage(error));
    },
  );
  return refusalsOf(meterId, given, refused);
}

/** A query for the readings of the table with their ordinals. */
export const readingsListed: SQL = sql`
      select
        ${timeKey},
        usage,
        quality,
        updated,
        unreadable,
        ${ordinalOf(sql`id`)}
      from ${listedReadings}`;

/**
 * Writes the readings of a proved pass that the warehouse lacks or has with other values,
 * regardless of their `updated`. A reading that a later read wrote is not changed.
 */
export async function writeListed(
  tx: Executor,
  { meterId, readAt }: { meterId: string; readAt: string },
): Promise<WrittenRows> {
  const { startAt, granularitySeconds, usageUnits, ordinal, syncedAt } = intervals;
  const starts = () => tx.select({ startAt: listedReadings.startAt }).from(listedReadings);
  // A statement does not see partitions that it creates itself.
  await makeMonths(tx, sql`${starts()} starts`);
  const listed = sql`(${readingsListed}) listed`;
  const inserted = await tx
    .insert(intervals)
    .select((query) =>
      query
        .select({
          meterId: sql`${meterId}`.as('meter_id'),
          startAt: sql`start_at`.as('start_at'),
          granularitySeconds: sql`granularity_seconds`.as('granularity_seconds'),
          usageUnits: sql`usage_units`.as('usage_units'),
          ordinal: sql`ordinal`.as('ordinal'),
          usage: sql`usage`.as('usage'),
          quality: sql`quality`.as('quality'),
          updated: sql`updated`.as('updated'),
          syncedAt: sql`${readAt}::timestamptz`.as('synced_at'),
          unreadable: sql`unreadable`.as('unreadable'),
        })
        .from(listed),
    )
    .onConflictDoNothing();
  const changed = await tx
    .update(intervals)
    .set({
      usage: sql`listed.usage`,
      quality: sql`listed.quality`,
      updated: sql`listed.updated`,
      syncedAt: readAt,
      unreadable: sql`listed.unreadable`,
    })
    .from(listed)
    .where(
      and(
        eq(intervals.meterId, meterId),
        between(
          startAt,
          sql`(select min(start_at) from ${starts()} starts)`,
          sql`(select max(start_at) from ${starts()} starts)`,
        ),
        sql`(${startAt}, ${granularitySeconds}, ${usageUnits}, ${ordinal})
          = (listed.start_at, listed.granularity_seconds, listed.usage_units, listed.ordinal)`,
        lte(syncedAt, readAt),
        differ('intervals', 'listed'),
      ),
    );
  return { inserted: inserted.rowCount ?? 0, changed: changed.rowCount ?? 0 };
}

/**
 * Widens a range to the last end of the readings that start in it, because the service may leave
 * out a reading that ends after the range.
 */
export async function widened<R extends ReadRange & { readonly meterId: string }>(
  db: Executor,
  range: R,
): Promise<R> {
  if (range.end === undefined) return range;
  const ends = endOf(intervals);
  const [last] = await db
    .select({ end: sql<string | null>`${canonical(sql`max(${ends})`)}` })
    .from(intervals)
    .where(
      and(
        eq(intervals.meterId, range.meterId),
        startsWithin(range, intervals),
        sql`${ends} > ${range.end}::timestamptz`,
      ),
    );
  const end = last?.end ?? null;
  return end === null ? range : { ...range, end };
}

/** Counts the listed readings of a range, and their values that could not be read. */
export async function countListed(
  tx: Executor,
  range: ReadRange,
): Promise<{ readonly readings: number; readonly unreadable: number }> {
  const values = sql`(select count(*) from jsonb_object_keys(${listedReadings.unreadable}))`;
  const [counted] = await tx
    .select({ readings: count(), unreadable: sql`coalesce(sum(${values}), 0)`.mapWith(Number) })
    .from(listedReadings)
    .where(startsWithin(range, listedReadings));
  return counted ?? { readings: 0, unreadable: 0 };
}
