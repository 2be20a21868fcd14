import { and, eq, gte, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { Executor, Warehouse } from '../connection/connect.ts';
import { isRefusal } from '../connection/failures.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import { row } from '../deletes/tombstone.ts';
import { readingKey } from '../records/interval-key.ts';
import { anyReadings, distinctReadings } from '../records/interval-rows.ts';
import {
  type IntervalColumns,
  type PlainReadings,
  plainReadings,
  readingsAt,
  readReadings,
  unreadableValues,
} from '../records/interval-text.ts';
import { type ListedRange, unequalReadings } from '../records/listed-readings.ts';
import { readingOf, refusedId } from '../records/rejected-records.ts';
import { intervals } from '../schema/utility.ts';
import { type Difference, type UnlistedRow, unlistedRows } from './compare-records.ts';

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
  const result = await db.execute<{
    equal: boolean;
    keys: number;
    from: number | null;
    to: number | null;
  }>(sql`
    with reported as materialized (
      select *
      from (${readings}
      ) readings
      where ${since}::timestamptz is null
        or start_at >= ${since}::timestamptz
    )
    select
      coalesce(
        bool_and(
          held.start_at is not null
          and (reported.usage, reported.quality)
            is not distinct from (held.usage, held.quality)
        ),
        true
      ) as equal,
      count(*)::int as keys,
      extract(epoch from min(start_at))::float8 as from,
      extract(epoch from max(start_at))::float8 as to
    from reported
      left join (
        select ${readingKey}, usage, quality
        from ${intervals}
        where ${intervals.meterId} = ${meterId}
          and ${intervals.startAt} between ${spanOf(plain)}
      ) held using (${readingKey})`);
  const [row] = result.rows;
  return {
    equal: row?.equal ?? true,
    refused: [],
    unreadable: unreadableValues(columns),
    keys: row?.keys ?? 0,
    from: row?.from ?? noKeys.from,
    to: row?.to ?? noKeys.to,
    overlap: false,
  };
}

/**
 * The span of starts of the readings. Given as two values, Postgres plans for their months alone.
 */
const spanOf = (plain: PlainReadings | undefined): SQL =>
  plain === undefined
    ? sql`(select min(start_at) from reported) and (select max(start_at) from reported)`
    : sql`${plain.from}::timestamptz and ${plain.to}::timestamptz`;

/** Counts the warehouse's readings of a meter, optionally only those that start since a moment. */
export async function countIntervals(
  db: Executor,
  meterId: string,
  since: string | null = null,
): Promise<number> {
  const [held] = await db
    .select({ count: sql<number>`count(*)::int` })
    .from(intervals)
    .where(and(eq(intervals.meterId, meterId), startsSince(intervals.startAt, since)));
  return held?.count ?? 0;
}

/** Whether a reading starts since a moment; no condition without one. */
const startsSince = (start: PgColumn, since: string | null): SQL | undefined =>
  since === null ? undefined : gte(start, sql`${since}::timestamptz`);

/** Compares a proved pass over a range of a meter with the warehouse. */
export async function compareListed(tx: Executor, listed: ListedRange): Promise<Difference[]> {
  const unequal = await unequalReadings(tx, listed);
  return unequal.map(({ id, listed, held }): Difference => {
    if (held === null) return { id, state: 'missing' };
    if (listed === null) return { id, state: 'extra' };
    const fields = (['usage', 'quality'] as const).flatMap((field) =>
      listed[field] === held[field]
        ? []
        : [{ field, service: listed[field], warehouse: held[field] }],
    );
    return { id, state: 'different', fields };
  });
}

/** Whether a meter's `row` lives and has readings: those of a deleted meter do not count. */
export const hasReadings = sql`${row.deletedAt} is null
      and exists (
        select
        from ${intervals}
        where ${intervals.meterId} = ${row.id}
        offset 0
      )`;

/**
 * Lists meters with readings that the service did not list: live ones of a company, including
 * meters of others that it is noted as listing.
 */
export const unlistedMeters = async (
  db: Executor,
  companyId: string,
  seenIds: readonly string[],
): Promise<UnlistedRow[]> =>
  await unlistedRows(db, 'meters', companyId, seenIds, { lives: hasReadings });
