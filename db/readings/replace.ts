import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { batches } from '../../contract/limits.ts';
import { array, columnNames } from '../connection/arrays.ts';
import {
  type Executor,
  type Transaction,
  type Warehouse,
  withConnection,
} from '../connection/connect.ts';
import { hasNoPartition, warehouseFailure } from '../connection/failures.ts';
import { prepared } from '../connection/prepared.ts';
import { deletes, intervalReads } from '../schema/reads.ts';
import { intervals } from '../schema/utility.ts';
import { type AbsentReadings, type ProvedRead, removeAbsentReadings } from './absent.ts';
import {
  byStart,
  inOrder,
  isDistinct,
  type Readings,
  type ReadingsPage,
  unpacked,
} from './pages.ts';
import {
  columnsCopied,
  columnsOfReading,
  differ,
  endOf,
  ensureMonths,
  isoTime,
  liesWithin,
  lockReadings,
  noteRead,
  type ReadRange,
  readingKey,
  timeKey,
} from './ranges.ts';

/** What a read of a range of a meter's readings showed. */
export interface ReadingsRead extends Omit<ProvedRead, 'listsAny' | 'inserted'> {
  readonly pages: readonly ReadingsPage[];
  /**
   * `proved`: what it lacks is gone. `whole`: it was read to its end, but readings may have moved between its pages
   * meanwhile, so another read has to confirm that something is gone. `partial`: it may lack anything.
   */
  readonly proof: 'proved' | 'whole' | 'partial';
}

export interface ReadingsReplaced {
  readonly inserted: number;
  readonly changed: number;
  readonly removed: number;
  readonly heldBack: number;
}

/** The reason why a transaction is rolled back: another read has to confirm that readings are gone. */
class Unproved extends Error {}
/** The read began so long ago that nobody remembers what later reads did not show. */
class Expired extends Error {}

/**
 * Replaces the readings of a range by those of a read, in one transaction under the lock of the meter. Readings that
 * a later read showed, or that lie within its range, are left as they are. Returns undefined, without any change, if
 * the read lacks readings and does not prove that they are gone, or began too long ago.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble
 */
export async function replaceReadings(
  warehouse: Warehouse,
  read: ReadingsRead,
): Promise<ReadingsReplaced | undefined> {
  const replace = async () => {
    await ensureMonths(warehouse, new Set(read.pages.flatMap(({ months }) => months)));
    return await withConnection(warehouse.db, (tx, client) => replaceIn(tx, client, read));
  };
  try {
    return await replace().catch((error: unknown) => {
      if (!hasNoPartition(error)) throw error;
      // The partition of a month that was known to exist has been dropped.
      warehouse.intervalMonths.clear();
      return replace();
    });
  } catch (error) {
    if (error instanceof Unproved || error instanceof Expired) return undefined;
    throw warehouseFailure(error);
  }
}

async function replaceIn(
  tx: Transaction,
  client: pg.PoolClient,
  read: ReadingsRead,
): Promise<ReadingsReplaced> {
  const { meterId, readAt, range, pages, proof } = read;
  if (!(await lockReadings(tx, meterId, readAt))) throw new Expired();
  const count = pages.reduce((sum, { readings }) => sum + readings, 0);
  let inserted = 0;
  let changed = 0;
  let noted = false;
  const absent: AbsentReadings[] = [];
  if (count >= batches.readingsCopied && areDistinct(pages) && (await isEmpty(tx, read))) {
    await copyReadings(client, read);
    inserted = count;
  } else {
    for (const part of partsOf(read, batches.readingsWritten)) {
      const replaced = await replacePart(tx, part);
      inserted += replaced.inserted;
      changed += replaced.changed;
      noted ||= replaced.noted;
      absent.push(replaced.absent);
    }
  }
  const written = { inserted, changed };
  if (proof === 'partial') return { ...written, removed: 0, heldBack: 0 };
  const lacking = {
    startAt: absent.flatMap(({ startAt }) => startAt),
    seconds: absent.flatMap(({ seconds }) => seconds),
    usageUnits: absent.flatMap(({ usageUnits }) => usageUnits),
    ordinal: absent.flatMap(({ ordinal }) => ordinal),
  };
  if (lacking.startAt.length > 0 && proof !== 'proved') throw new Unproved();
  const judged = { ...read, listsAny: count > 0, inserted };
  const removed =
    noted || lacking.startAt.length > 0 ? await removeAbsentReadings(tx, judged, lacking) : none;
  await noteRead(tx, { meterId, range }, readAt);
  return { ...written, ...removed };
}

const none = { removed: 0, heldBack: 0 };

/** Divides what a read showed into parts of about `size` readings, whose regions cover its range. */
export function* partsOf(
  { meterId, readAt, range, pages }: Pick<ReadingsRead, 'meterId' | 'readAt' | 'range' | 'pages'>,
  size: number,
): Generator<PartRead> {
  let after: string | null = null;
  const parts = inOrder(pages, size);
  for (let part = parts.next(); part.done !== true; ) {
    const next = parts.next();
    yield { meterId, readAt, range, readings: part.value, after, isLast: next.done === true };
    after = part.value.startAt.at(-1) ?? null;
    part = next;
  }
}

/** A part of what a read of a meter's readings showed, and the region in which it is compared. */
export interface PartRead {
  readonly meterId: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  /** The range that was read. */
  readonly range: ReadRange;
  readonly readings: Readings;
  /**
   * Where the region begins: after the last start of the part before. The region of the first part begins with its
   * own readings or with the range, whatever is earlier.
   */
  readonly after: string | null;
  /** Whether the region ends with the range, unless a reading starts later. */
  readonly isLast: boolean;
}

/** What the replacement of a part did; `absent` has the readings that the warehouse has and the read lacks. */
interface PartReplaced {
  readonly inserted: number;
  readonly changed: number;
  /** Whether any removal of readings of the meter is noted. */
  readonly noted: boolean;
  readonly absent: AbsentReadings;
}

/**
 * The readings of a part with their ordinals, as a table. Readings of the same time are numbered in the order of
 * their values, so that ordinals are stable.
 */
export function incomingReadings({ readings }: Pick<PartRead, 'readings'>): SQL {
  const { startAt, seconds, usageUnits, usage, quality, updated, id } = readings;
  const unreadable = readings.unreadable.some((texts) => texts !== null) ? readings.unreadable : [];
  const ordinal = isDistinct(readings)
    ? sql`0`
    : sql`(row_number() over (
          partition by start_at, granularity_seconds, usage_units
          order by usage, quality, updated, unreadable::jsonb, id
        ) - 1)::int`;
  return sql`(
        select ${timeKey}, ${ordinal} as ordinal, usage, quality, updated, unreadable::jsonb
        from unnest(
            ${array(startAt, 'timestamptz')}, ${array(seconds, 'int')},
            ${array(usageUnits, 'text')}, ${array(usage, 'numeric')}, ${array(quality, 'text')},
            ${array(updated, 'timestamptz')}, ${array(unreadable, 'text')}, ${array(id, 'text')}
          ) as t (${timeKey}, usage, quality, updated, unreadable, id)
      )`;
}

/** The readings that the warehouse has in the region of a part, as a table. */
export function heldReadings({ meterId, range, readings, after, isLast }: PartRead): SQL {
  const { start = '-infinity', end = 'infinity' } = range;
  const [first, last] = [readings.startAt[0] ?? null, readings.startAt.at(-1) ?? null];
  return sql`(
        select ${readingKey}, usage, quality, updated, unreadable, synced_at
        from ${intervals}
        where meter_id = ${meterId}
          and start_at >= least(${after ?? start}::timestamptz, ${after ?? first}::timestamptz)
          and start_at <= greatest(${isLast ? end : last}::timestamptz, ${last}::timestamptz)
          and start_at is distinct from ${after}::timestamptz
      )`;
}

/**
 * Replaces the readings of a region by those of a read, except that nothing is removed: returns what the read lacks.
 * What lies within the range of a read that began later is left out, and so is what such a read showed. The caller
 * has locked the meter. Thousands of rows are compared without being sent to the process.
 */
async function replacePart(tx: Executor, part: PartRead): Promise<PartReplaced> {
  const { meterId, readAt, range } = part;
  const { rows } = await prepared(tx, 'replacePart').execute<
    Omit<PartReplaced, 'absent'> & Record<keyof AbsentReadings, never[] | null>
  >(sql`
    with incoming as materialized (
      select * from ${incomingReadings(part)} shown
    ), held as materialized (
      select * from ${heldReadings(part)} stored
    ), later as materialized (
      select span
      from ${intervalReads}
      where meter_id = ${meterId} and began > ${readAt}::timestamptz
    ), differing as materialized (
      select
        ${readingKey}, i.usage, i.quality, i.updated, i.unreadable,
        i.ordinal is not null as is_listed,
        h.ordinal is not null as is_held
      from held h
        full join incoming i using (${readingKey})
      where (i.ordinal is null or h.ordinal is null or ${differ('i', 'h')})
        and h.synced_at > ${readAt}::timestamptz is not true
    ), judged as materialized (
      select *
      from differing d
      where not exists (
          select from later where span @> tstzrange(d.start_at, ${endOf(sql`d`)})
        )
    ), written as (
      insert into ${intervals} (${columnNames(columnsOfReading)})
      select ${meterId}, ${readingKey}, usage, quality, updated, ${readAt}::timestamptz, unreadable
      from judged
      where is_listed
      on conflict (meter_id, ${readingKey}) do update set
        usage = excluded.usage,
        quality = excluded.quality,
        updated = excluded.updated,
        synced_at = excluded.synced_at,
        unreadable = excluded.unreadable
    ), absent as (
      select *
      from judged
      where not is_listed
        and ${liesWithin(range, sql`judged`)}
      order by ${readingKey}
    )
    select
      (select count(*) from judged where is_listed and not is_held)::int as inserted,
      (select count(*) from judged where is_listed and is_held)::int as changed,
      exists (select from ${deletes} where meter_id = ${meterId}) as noted,
      array_agg(${isoTime(sql`start_at`)}) as "startAt",
      array_agg(granularity_seconds) as seconds,
      array_agg(usage_units) as "usageUnits",
      array_agg(ordinal) as ordinal
    from absent`);
  const [row] = rows;
  if (row === undefined) throw new Error('a select without groups has one row');
  const { inserted, changed, noted, startAt, seconds, usageUnits, ordinal } = row;
  return {
    inserted,
    changed,
    noted,
    absent: {
      startAt: startAt ?? [],
      seconds: seconds ?? [],
      usageUnits: usageUnits ?? [],
      ordinal: ordinal ?? [],
    },
  };
}

/** Whether no two readings start at the same time, and all values could be read, so that COPY can write them. */
function areDistinct(pages: readonly ReadingsPage[]): boolean {
  const ordered = byStart(pages);
  return ordered.every(
    ({ first, distinct, unreadable }, at) =>
      distinct && unreadable === 0 && (at === 0 || first > (ordered[at - 1]?.last ?? '')),
  );
}

/** Whether the warehouse has no reading of a range, and neither a later read nor a removal is noted. */
async function isEmpty(
  tx: Transaction,
  { meterId, readAt, range, pages }: ReadingsRead,
): Promise<boolean> {
  const first = pages.map((page) => page.first).toSorted()[0] ?? null;
  const last =
    pages
      .map((page) => page.last)
      .toSorted()
      .at(-1) ?? null;
  const { rows } = await tx.execute<{ empty: boolean }>(sql`
    select
      not exists (
        select from ${intervals}
        where meter_id = ${meterId}
          and start_at >= least(${range.start ?? '-infinity'}::timestamptz, ${first}::timestamptz)
          and start_at <= greatest(${range.end ?? 'infinity'}::timestamptz, ${last}::timestamptz)
      ) and not exists (
        select from ${intervalReads}
        where meter_id = ${meterId} and began > ${readAt}::timestamptz
      ) and not exists (
        select from ${deletes} where meter_id = ${meterId}
      ) as empty`);
  return rows[0]?.empty === true;
}

const copyStatement = new PgDialect().sqlToQuery(
  sql`copy ${intervals} (${columnNames(columnsCopied)}) from stdin`,
).sql;

/** Copies pages of new readings of a meter, of which no two start at the same time and all values could be read. */
async function copyReadings(
  client: pg.PoolClient,
  { meterId, readAt, pages }: { meterId: string; readAt: string; pages: readonly ReadingsPage[] },
): Promise<void> {
  const texts = function* () {
    for (const page of pages) yield copyText(meterId, readAt, unpacked(page));
  };
  await pipeline(Readable.from(texts()), client.query(copyFrom(copyStatement)));
}

function copyText(meterId: string, readAt: string, readings: Readings): string {
  const { startAt, seconds, usage, usageUnits, quality, updated } = readings;
  const meter = escapeCopy(meterId);
  let text = '';
  for (let at = 0; at < startAt.length; at++) {
    text += `${meter}\t${startAt[at]}\t${seconds[at]}\t${escapeCopy(usageUnits[at] ?? '')}\t${copyValue(usage[at])}\t`;
    text += `${copyValue(quality[at])}\t${copyValue(updated[at])}\t${readAt}\n`;
  }
  return text;
}

const copyValue = (value: string | null | undefined): string =>
  value == null ? '\\N' : escapeCopy(value);

const special = /[\\\t\n\r]/;
const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
};

function escapeCopy(text: string): string {
  return special.test(text) ? text.replace(/[\\\t\n\r]/g, (c) => escapes[c] ?? c) : text;
}
