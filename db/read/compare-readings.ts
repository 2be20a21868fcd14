import { and, eq, gte, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import { array, columnNames } from '../arrays.ts';
import type { Database, Executor, Transaction, Warehouse } from '../connect.ts';
import { row } from '../deletes/tombstone.ts';
import { isRefusal } from '../failures.ts';
import {
  type IntervalColumns,
  plainReadings,
  readingsAt,
  readReadings,
  unreadableValues,
} from '../records/interval-text.ts';
import { keyAsText } from '../records/intervals.ts';
import { readingOf, refusedId } from '../records/rejected-records.ts';
import { alsoListed } from '../schema/metersync.ts';
import { intervals, meters } from '../schema/utility.ts';
import { splitOnRefusal } from '../split-on-refusal.ts';
import {
  type Difference,
  type DifferentField,
  listingCompanies,
  type UnlistedRow,
} from './compare-records.ts';

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
  readonly differences: readonly Difference[];
  /** Values of the service's readings that could not be read. */
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
 * Compares readings of a meter with the warehouse, optionally only those that start since a moment.
 * Ids of differences are `meter@start/seconds/unit`. A reading that Postgres cannot hold is
 * missing.
 */
export async function compareIntervals(
  warehouse: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  columns: IntervalColumns,
  since: string | null = null,
): Promise<ReadingsCompared> {
  try {
    return await compareRead(warehouse, meterId, columns, since, false);
  } catch (error) {
    // A plain time that does not exist.
    if (!isRefusal(error)) throw error;
    return await compareRead(warehouse, meterId, columns, since, true);
  }
}

async function compareRead(
  warehouse: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  given: IntervalColumns,
  since: string | null,
  strictly: boolean,
): Promise<ReadingsCompared> {
  const { columns, wrong, right } = readReadings(given, warehouse.zoneIsUtc, strictly);
  const refused = (place: number): ReadingsCompared => ({
    ...noKeys,
    keys: 1,
    unreadable: 0,
    differences: [
      { id: refusedId(readingOf(meterId, columns.startAt[place] ?? '')), state: 'missing' },
    ],
  });
  const compare = (places: readonly number[]): Promise<ReadingsCompared> =>
    compareReadings(warehouse, meterId, readingsAt(columns, places), since);
  const compared = strictly
    ? await splitOnRefusal(right, compare, refused)
    : [await compare(right)];
  const parts = [...compared, ...[...wrong.keys()].map(refused)];
  const differences = parts.flatMap((part) => part.differences);
  const unreadable = parts.reduce((sum, part) => sum + part.unreadable, 0);
  return { ...parts.reduce(joinKeys, noKeys), differences, unreadable };
}

/** Times that `metersync.read_time` casts unchanged: it cuts off digits below microseconds. */
const datedTime = /^\d{4}-\d\d-\d\d(?!.*[.,]\d{7})/;

/**
 * The service's readings as a table `reported` with the columns of a reading. Postgres parses times
 * and amounts.
 */
function reported(columns: IntervalColumns, since: string | null): SQL {
  const { startAt, endAt } = columns;
  const dated = [...startAt, ...endAt].every((time) => time === null || datedTime.test(time));
  const times = (values: readonly (string | null)[]): SQL =>
    array(values, dated ? 'timestamptz' : 'text');
  const time = (name: 's' | 'e'): SQL => sql.raw(dated ? name : `metersync.read_time(${name})`);
  const readings = unnestedReadings(columns, times);
  return sql`reported as materialized (
    select *
    from (
      select
        ${time('s')} as start_at,
        coalesce(g, extract(epoch from ${time('e')} - ${time('s')})::int) as granularity_seconds,
        coalesce(units, '') as usage_units,
        usage,
        quality
      from ${readings}
    ) readings
    where ${since}::timestamptz is null
      or start_at >= ${since}::timestamptz
  )`;
}

/** Readings as a table `t (s, e, g, usage, units, quality)`, each column as one parameter. */
const unnestedReadings = (
  { startAt, endAt, granularitySeconds, usage, usageUnits, quality }: IntervalColumns,
  times: (values: readonly (string | null)[]) => SQL,
): SQL => sql`unnest(
        ${times(startAt)},
        ${times(endAt)},
        ${array(granularitySeconds, 'int')},
        ${array(usage, 'numeric')},
        ${array(usageUnits, 'text')},
        ${array(quality, 'text')}
      ) as t (s, e, g, usage, units, quality)`;

/**
 * The span of starts of the readings. Given as two values, Postgres plans for their months alone.
 */
function spanOf(columns: IntervalColumns, zoneIsUtc: boolean): SQL {
  const plain = plainReadings(columns, zoneIsUtc);
  return plain === undefined
    ? sql`(select min(start_at) from reported) and (select max(start_at) from reported)`
    : sql`${plain.from}::timestamptz and ${plain.to}::timestamptz`;
}

const reading = alias(intervals, 'reading');

const { startAt, granularitySeconds, usageUnits } = intervals;

/** The columns that identify a reading of a meter. */
const readingKey = columnNames([startAt, granularitySeconds, usageUnits]);

async function compareReadings(
  { db, zoneIsUtc }: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  columns: IntervalColumns,
  since: string | null,
): Promise<ReadingsCompared> {
  const result = await db.execute<{
    id: string | null;
    missing: boolean;
    keys: number;
    from: number | null;
    to: number | null;
    fields: DifferentField[];
  }>(sql`
    with ${reported(columns, since)}
    select
      ${meterId} || ${keyAsText(sql`reported`)} as id,
      held.start_at is null as missing,
      0 as keys,
      null::float8 as from,
      null::float8 as to,
      (
        select jsonb_agg(jsonb_build_object('field', field, 'service', a, 'warehouse', b))
        from (
          values
            ('usage', reported.usage::text, held.usage::text),
            ('quality', reported.quality, held.quality)
        ) as f (field, a, b)
        where a is distinct from b
      ) as fields
    from reported
      left join (
        select *
        from ${intervals}
        where ${intervals.meterId} = ${meterId}
          and ${intervals.startAt} between ${spanOf(columns, zoneIsUtc)}
      ) held using (${readingKey})
    where held.start_at is null
      or (reported.usage, reported.quality) is distinct from (held.usage, held.quality)
    union all
    select
      null,
      false,
      count(*)::int,
      extract(epoch from min(start_at))::float8,
      extract(epoch from max(start_at))::float8,
      null
    from (
      select distinct ${readingKey}
      from reported
    ) keys`);
  const differences = result.rows.flatMap((row): Difference[] =>
    row.id === null
      ? []
      : [
          row.missing
            ? { id: row.id, state: 'missing' }
            : { id: row.id, state: 'different', fields: row.fields },
        ],
  );
  const counted = result.rows.find((row) => row.id === null);
  return {
    differences,
    unreadable: unreadableValues(columns),
    keys: counted?.keys ?? 0,
    from: counted?.from ?? noKeys.from,
    to: counted?.to ?? noKeys.to,
    overlap: false,
  };
}

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

/** Keys of the service's readings, until the transaction ends. */
const reportedKeys = sql.identifier('reported_keys');

/**
 * Returns readings of a meter that are not among the service's. The keys of those are collected in
 * Postgres, so that memory stays flat for any number.
 */
export async function extraReadings(
  db: Database,
  meterId: string,
  pages: AsyncIterable<IntervalColumns>,
  since: string | null,
): Promise<Difference[]> {
  return await db.transaction(async (tx) => {
    await makeReportedKeys(tx);
    for await (const columns of pages) await noteReportedKeys(tx, columns, since);
    return await readingsNotReported(tx, meterId, since);
  });
}

async function makeReportedKeys(tx: Executor): Promise<void> {
  await tx.execute(sql`
    create temp table ${reportedKeys} (
      start_at timestamptz,
      granularity_seconds int,
      usage_units text
    ) on commit drop`);
}

/** Notes also keys of readings whose amounts Postgres cannot hold; only those at no time have none. */
async function noteReportedKeys(
  tx: Transaction,
  columns: IntervalColumns,
  since: string | null,
): Promise<void> {
  const none = columns.startAt.map(() => null);
  const keys: IntervalColumns = { ...columns, usage: none, quality: none };
  await splitOnRefusal(
    [...none.keys()],
    (places) =>
      tx.transaction((inner) =>
        inner.execute(sql`
          with ${reported(readingsAt(keys, places), since)}
          insert into ${reportedKeys} (${readingKey})
          select ${readingKey}
          from reported`),
      ),
    () => undefined,
  );
}

async function readingsNotReported(
  tx: Executor,
  meterId: string,
  since: string | null,
): Promise<Difference[]> {
  const result = await tx.execute<{ id: string }>(sql`
    select ${meterId} || ${keyAsText(reading)} as id
    from ${intervals} ${reading}
      left join ${reportedKeys} given using (${readingKey})
    where ${reading.meterId} = ${meterId}
      and given.start_at is null
      and ${startsSince(reading.startAt, since) ?? sql`true`}
    order by ${reading.startAt}, 1`);
  return result.rows.map(({ id }) => ({ id, state: 'extra' }));
}

/** Whether a meter's `row` has readings. */
export const hasReadings = sql`exists (
        select
        from ${intervals}
        where ${intervals.meterId} = ${row.id}
        offset 0
      )`;

/**
 * Lists meters with readings that the service did not list: of a company, including meters of others
 * that it is noted as listing, whether or not they live.
 */
export async function unlistedMeters(
  db: Executor,
  companyId: string,
  seenIds: readonly string[],
): Promise<UnlistedRow[]> {
  const seen = array(seenIds, 'text');
  const named = sql`
      ${row.id},
      ${listingCompanies('meters')} as companies`;
  const result = await db.execute<{ id: string; companies: string[] }>(sql`
    select${named}
    from ${meters} ${row}
    where ${row.companyId} = ${companyId}::uuid
      and not (${row.id} = any(${seen}))
      and ${hasReadings}
    union all
    select
      theirs.id,
      theirs.companies
    from ${alsoListed} listed
      cross join lateral (
        select${named}
        from ${meters} ${row}
        where ${row.id} = listed.record_id
          and ${row.companyId} <> ${companyId}::uuid
          and ${hasReadings}
        offset 0
      ) theirs
    where listed.company_id = ${companyId}::uuid
      and listed.resource = 'meters'
      and not (listed.record_id = any(${seen}))
    order by id`);
  return result.rows;
}
