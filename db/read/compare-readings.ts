import { and, between, count, eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { literal } from '../connection/arrays.ts';
import type { Executor, Warehouse } from '../connection/connect.ts';
import { isRefusal } from '../connection/failures.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import { anyReadings, distinctReadings } from '../records/interval-rows.ts';
import {
  type IntervalColumns,
  plainReadings,
  readingsAt,
  readReadings,
  unreadableValues,
} from '../records/interval-text.ts';
import { type ListedRange, unequalReadings } from '../records/listed-readings.ts';
import { readingOf, refusedId } from '../records/rejected-records.ts';
import { intervals } from '../schema/utility.ts';
import type { Difference } from './compare-records.ts';

/** Readings of a meter that were compared, in parts such as pages. */
export interface KeysCompared {
  /** How many distinct ones each part has, in all. */
  readonly keys: number;
  /** The first and the last start, in seconds since 1970. */
  readonly from: number;
  readonly to: number;
  /** Whether parts overlap in time: a reading may be in two. */
  readonly overlap: boolean;
}

export interface ReadingsCompared extends KeysCompared {
  /** Whether the warehouse has each of them with the same values. */
  readonly equal: boolean;
  /** Those that Postgres cannot hold. */
  readonly refused: readonly Difference[];
  /** Values that could not be read. */
  readonly unreadable: number;
}

export const noKeys: KeysCompared = {
  keys: 0,
  from: Number.POSITIVE_INFINITY,
  to: Number.NEGATIVE_INFINITY,
  overlap: false,
};

export const joinKeys = (a: KeysCompared, b: KeysCompared): KeysCompared => ({
  keys: a.keys + b.keys,
  from: Math.min(a.from, b.from),
  to: Math.max(a.to, b.to),
  overlap: a.overlap || b.overlap || (a.from <= b.to && b.from <= a.to),
});

/**
 * Compares readings of a page with the warehouse, optionally only those that start since a moment.
 * Readings that Postgres cannot hold are left out of the comparison.
 */
export async function compareIntervals(
  warehouse: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  given: IntervalColumns,
  since: string | null = null,
): Promise<ReadingsCompared> {
  return await compareRead(warehouse, meterId, given, since, false).catch((error: unknown) => {
    // A plain time that does not exist.
    if (!isRefusal(error)) throw error;
    return compareRead(warehouse, meterId, given, since, true);
  });
}

async function compareRead(
  warehouse: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  given: IntervalColumns,
  since: string | null,
  strictly: boolean,
): Promise<ReadingsCompared> {
  const { columns, wrong, right } = readReadings(given, warehouse.zoneIsUtc, strictly);
  const refused = (place: number): ReadingsCompared => {
    const id = refusedId(readingOf(meterId, given.startAt[place] ?? ''));
    return { ...noKeys, equal: true, refused: [{ id, state: 'missing' }], unreadable: 0 };
  };
  const compare = (places: readonly number[]): Promise<ReadingsCompared> =>
    compareReadings(warehouse, meterId, readingsAt(columns, places), since);
  const compared = strictly
    ? await splitOnRefusal<number, ReadingsCompared>(right, compare, refused)
    : [await compare(right)];
  const parts = [...compared, ...[...wrong.keys()].map(refused)];
  return {
    ...parts.reduce(joinKeys, noKeys),
    equal: parts.every(({ equal }) => equal),
    refused: parts.flatMap((part) => part.refused),
    unreadable: parts.reduce((all, part) => all + part.unreadable, 0),
  };
}

async function compareReadings(
  { db, zoneIsUtc }: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  columns: IntervalColumns,
  since: string | null,
): Promise<ReadingsCompared> {
  const plain = plainReadings(columns, zoneIsUtc);
  const readings = plain?.distinct
    ? distinctReadings(columns, plain.seconds)
    : anyReadings(columns);
  const start = sql`start_at`.as('starts');
  const reported = db.$with('reported').as(
    db
      .select({
        start,
        seconds: sql`granularity_seconds`.as('seconds'),
        units: sql`usage_units`.as('units'),
        ordinal: sql`ordinal`.as('place'),
        usage: sql`usage`.as('reported_usage'),
        quality: sql`quality`.as('reported_quality'),
      })
      .from(sql`(${readings}) readings`)
      .where(startsSince(sql`start_at`, since))
      .offset(literal(0)),
  );
  // Given as two values, Postgres plans only for their months.
  const [from, to] =
    plain === undefined
      ? [sql`(select min(starts) from ${reported})`, sql`(select max(starts) from ${reported})`]
      : [sql`${plain.from}::timestamptz`, sql`${plain.to}::timestamptz`];
  const held = db
    .select()
    .from(intervals)
    .where(and(eq(intervals.meterId, meterId), between(intervals.startAt, from, to)))
    .as('held');
  const isEqual = sql`${held.startAt} is not null
    and (${reported.usage}, ${reported.quality}) is not distinct from (${held.usage}, ${held.quality})`;
  const [compared] = await db
    .with(reported)
    .select({
      equal: sql<boolean>`coalesce(bool_and(${isEqual}), true)`,
      keys: count(),
      from: sql<number | null>`extract(epoch from min(${reported.start}))::float8`,
      to: sql<number | null>`extract(epoch from max(${reported.start}))::float8`,
    })
    .from(reported)
    .leftJoin(
      held,
      and(
        eq(held.startAt, reported.start),
        eq(held.granularitySeconds, reported.seconds),
        eq(held.usageUnits, reported.units),
        eq(held.ordinal, reported.ordinal),
      ),
    );
  return {
    equal: compared?.equal ?? true,
    refused: [],
    unreadable: unreadableValues(columns),
    keys: compared?.keys ?? 0,
    from: compared?.from ?? noKeys.from,
    to: compared?.to ?? noKeys.to,
    overlap: false,
  };
}

/** Counts the warehouse's readings of a meter, optionally only those that start since a moment. */
export async function countIntervals(
  db: Executor,
  meterId: string,
  since: string | null = null,
): Promise<number> {
  const { meterId: meter, startAt } = intervals;
  return await db.$count(intervals, and(eq(meter, meterId), startsSince(startAt, since)));
}

/** Whether a reading starts since a moment; no condition without one. */
const startsSince = (start: SQLWrapper, since: string | null): SQL | undefined =>
  since === null ? undefined : sql`${start} >= ${since}::timestamptz`;

/** Compares a proved pass over a range of a meter with the warehouse. */
export async function compareListed(tx: Executor, listed: ListedRange): Promise<Difference[]> {
  const unequal = await unequalReadings(tx, listed);
  return unequal.map(({ id, listed, held, kept }): Difference => {
    if (held === null) return { id, state: 'missing' };
    if (listed === null) return { id, state: kept ? 'kept' : 'extra' };
    const fields = (['usage', 'quality'] as const).flatMap((field) =>
      listed[field] === held[field]
        ? []
        : [{ field, service: listed[field], warehouse: held[field] }],
    );
    return { id, state: 'different', fields };
  });
}
