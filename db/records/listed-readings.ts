import { type SQL, sql } from 'drizzle-orm';
import { columnNames } from '../connection/arrays.ts';
import type { Executor, Transaction, Warehouse } from '../connection/connect.ts';
import { sqlMessage } from '../connection/failures.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import { intervals } from '../schema/utility.ts';
import {
  canonical,
  columnsOfReading,
  differ,
  endOf,
  keyAsText,
  liesWithin,
  ordinalOf,
  type ReadRange,
  readingKey,
  startsWithin,
  timeKey,
} from './interval-key.ts';
import { parsedReadings } from './interval-rows.ts';
import { type IntervalColumns, readingsAt, readReadings } from './interval-text.ts';
import type { WrittenRows } from './page.ts';
import { refusalsOf } from './rejected-readings.ts';
import type { RejectedRecord } from './rejected-records.ts';

/** The readings that passes over a listing showed, until the transaction ends. */
const listedReadings = sql.identifier('listed_readings');

/**
 * Makes a table for the readings that passes over a listing of one meter show. They are collected in
 * Postgres, so that memory stays flat for any number.
 */
export async function makeListedReadings(tx: Executor): Promise<void> {
  // The transaction waits for the service, longer than a server may allow others to stay idle.
  await tx.execute(sql`set local idle_in_transaction_session_timeout = 0`);
  await tx.execute(sql`
    create temp table ${listedReadings} (
      pass int,
      start_at timestamptz not null,
      granularity_seconds int not null check (granularity_seconds > 0),
      usage_units text,
      usage numeric,
      quality text,
      updated timestamptz,
      unreadable jsonb,
      id text
    ) on commit drop`);
}

/** Adds the readings of a page to a pass, except those that Postgres refuses, which it returns. */
export async function addListedReadings(
  tx: Transaction,
  { zoneIsUtc }: Pick<Warehouse, 'zoneIsUtc'>,
  { meterId, pass }: { meterId: string; pass: number },
  given: IntervalColumns,
): Promise<RejectedRecord[]> {
  const { columns, wrong, right } = readReadings(given, zoneIsUtc, true);
  const refused = new Map(wrong);
  await splitOnRefusal<number, unknown>(
    right,
    (places) =>
      tx.transaction((inner) =>
        inner.execute(sql`
          insert into ${listedReadings}
          select ${pass}::int, *
          from (${parsedReadings(readingsAt(columns, places))}
          ) parsed`),
      ),
    (place, error) => {
      refused.set(place, sqlMessage(error));
    },
  );
  return refusalsOf(meterId, given, refused);
}

/** Deletes the passes before the given one. */
export async function deletePassesBefore(tx: Executor, pass: number): Promise<void> {
  await tx.execute(sql`delete from ${listedReadings} where pass < ${pass}`);
}

/** Whether a pass showed the same record twice: then its pages shifted, and it may lack another. */
export async function showsTwice(tx: Executor, pass: number): Promise<boolean> {
  const { rows } = await tx.execute<{ twice: boolean }>(sql`
    select count(id) > count(distinct id) as twice
    from ${listedReadings}
    where pass = ${pass}`);
  return rows[0]?.twice === true;
}

/** Whether a later pass showed every reading that an earlier one showed. */
export async function showsAllOf(tx: Executor, later: number, earlier: number): Promise<boolean> {
  const shown = (pass: number): SQL => sql`
        select ${timeKey}, usage, quality, updated, unreadable, id
        from ${listedReadings}
        where pass = ${pass}`;
  const { rows } = await tx.execute<{ all: boolean }>(sql`
    select not exists (${shown(earlier)}
        except all${shown(later)}
      ) as all`);
  return rows[0]?.all === true;
}

/** The readings of a pass, as rows with the key of a reading. */
export const readingsOfPass = (pass: number): SQL => sql`
      select
        ${timeKey},
        usage,
        quality,
        updated,
        unreadable,
        ${ordinalOf(sql`id`)}
      from ${listedReadings}
      where pass = ${pass}`;

/**
 * Writes the readings of a proved pass that the warehouse lacks or has otherwise, whatever their
 * `updated` says. A reading that a later read brought stays.
 */
export async function writeListed(
  tx: Executor,
  { meterId, readAt, pass }: { meterId: string; readAt: string; pass: number },
): Promise<WrittenRows> {
  // A statement does not see partitions that it makes.
  await tx.execute(sql`
    select metersync.ensure_interval_month(month)
    from (
      select distinct date_trunc('month', start_at, 'UTC') as month
      from ${listedReadings}
      where pass = ${pass}
      order by month
    ) months`);
  const { rows } = await tx.execute<WrittenRows & Record<string, unknown>>(sql`
    with listed as materialized (${readingsOfPass(pass)}
    ), held as materialized (
      select ${readingKey}, usage, quality, updated, unreadable
      from ${intervals}
      where meter_id = ${meterId}
        and start_at between (select min(start_at) from listed) and (select max(start_at) from listed)
    ), written as (
      insert into ${intervals} as t (${columnNames(columnsOfReading)})
      select
        ${meterId},
        ${readingKey},
        l.usage,
        l.quality,
        l.updated,
        ${readAt}::timestamptz,
        l.unreadable
      from listed l
        left join held h using (${readingKey})
      where h.start_at is null
        or ${differ('l', 'h')}
      on conflict (meter_id, ${readingKey}) do update set
        usage = excluded.usage,
        quality = excluded.quality,
        updated = excluded.updated,
        synced_at = excluded.synced_at,
        unreadable = excluded.unreadable
      where t.synced_at <= excluded.synced_at
        and ${differ('t', 'excluded')}
      returning ${readingKey}
    )
    select
      count(*) filter (where h.start_at is null)::int as inserted,
      count(h.start_at)::int as changed
    from written w
      left join held h using (${readingKey})`);
  return rows[0] ?? { inserted: 0, changed: 0 };
}

/** Widens a range to the end of the readings that start in it: the service may leave out one that ends later. */
export async function widened<R extends ReadRange & { readonly meterId: string }>(
  db: Executor,
  range: R,
): Promise<R> {
  if (range.end === undefined) return range;
  const { rows } = await db.execute<{ end: string | null }>(sql`
    select ${canonical(sql`max(${endOf(sql`i`)})`)} as end
    from ${intervals} i
    where meter_id = ${range.meterId}
      and ${startsWithin(range, sql`i`)}
      and ${endOf(sql`i`)} > ${range.end}::timestamptz`);
  const end = rows[0]?.end ?? null;
  return end === null ? range : { ...range, end };
}

/** A pass over a range of a meter. */
export interface ListedRange {
  readonly meterId: string;
  readonly range: ReadRange;
  readonly pass: number;
}

/** A reading that only one side has, or that the sides have with other values. */
export interface UnequalReading extends Record<string, unknown> {
  /** `meter@start/seconds/unit`, and the ordinal if it is not 0. */
  readonly id: string;
  readonly listed: { readonly usage: string | null; readonly quality: string | null } | null;
  readonly held: { readonly usage: string | null; readonly quality: string | null } | null;
}

/** Compares a pass over a range with the warehouse; returns the readings that are not equal. */
export async function unequalReadings(
  tx: Executor,
  { meterId, range, pass }: ListedRange,
): Promise<UnequalReading[]> {
  const values = (of: string): SQL =>
    sql.raw(`case
        when ${of}.start_at is not null
          then jsonb_build_object('usage', ${of}.usage::text, 'quality', ${of}.quality)
      end`);
  const { rows } = await tx.execute<UnequalReading>(sql`
    with listed as materialized (
      select *
      from (${readingsOfPass(pass)}
      ) shown
      where ${liesWithin(range, sql`shown`)}
    ), held as materialized (
      select ${readingKey}, usage, quality
      from ${intervals} i
      where meter_id = ${meterId}
        and ${liesWithin(range, sql`i`)}
    )
    select
      ${meterId} || ${keyAsText(sql`both_sides`)} as id,
      listed,
      held
    from (
      select
        ${readingKey},
        ${values('l')} as listed,
        ${values('h')} as held
      from listed l
        full join held h using (${readingKey})
    ) both_sides
    where listed is distinct from held
    order by start_at, 1`);
  return rows;
}
