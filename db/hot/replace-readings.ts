import { sql } from 'drizzle-orm';
import { array, columnNames } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import {
  canonical,
  columnsOfReading,
  differ,
  endOf,
  liesWithin,
  type ReadRange,
  readingKey,
  timeKey,
} from '../records/interval-key.ts';
import { isDistinct, type Readings } from '../records/listed-readings.ts';
import { deletes, intervalReads } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';

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

/** The keys of readings that a read lacks, as columns. */
export interface AbsentReadings {
  readonly startAt: readonly string[];
  readonly seconds: readonly number[];
  readonly usageUnits: readonly string[];
  readonly ordinal: readonly number[];
}

/** What the replacement of a part did; `absent` has the readings that the warehouse has and the read lacks. */
export interface PartReplaced {
  readonly inserted: number;
  readonly changed: number;
  /** Whether any removal of readings of the meter is noted. */
  readonly noted: boolean;
  readonly absent: AbsentReadings;
}

/**
 * The readings `incoming` of a part with their ordinals. Readings of the same time are numbered in the order of
 * their values, so that ordinals are stable.
 */
export function incomingReadings({ readings }: Pick<PartRead, 'readings'>) {
  const { startAt, seconds, usageUnits, usage, quality, updated, id } = readings;
  const unreadable = readings.unreadable.some((texts) => texts !== null) ? readings.unreadable : [];
  const ordinal = isDistinct(readings)
    ? sql`0`
    : sql`(row_number() over (
          partition by start_at, granularity_seconds, usage_units
          order by usage, quality, updated, unreadable::jsonb, id
        ) - 1)::int`;
  return sql`
      select ${timeKey}, ${ordinal} as ordinal, usage, quality, updated, unreadable::jsonb
      from unnest(
          ${array(startAt, 'timestamptz')},
          ${array(seconds, 'int')},
          ${array(usageUnits, 'text')},
          ${array(usage, 'numeric')},
          ${array(quality, 'text')},
          ${array(updated, 'timestamptz')},
          ${array(unreadable, 'text')},
          ${array(id, 'text')}
        ) as t (${timeKey}, usage, quality, updated, unreadable, id)`;
}

/** The readings `held` that the warehouse has in the region of a part. */
export function heldReadings({ meterId, range, readings, after, isLast }: PartRead) {
  const { start = '-infinity', end = 'infinity' } = range;
  const [first, last] = [readings.startAt[0] ?? null, readings.startAt.at(-1) ?? null];
  return sql`
      select ${readingKey}, usage, quality, updated, unreadable, synced_at
      from ${intervals}
      where meter_id = ${meterId}
        and start_at >= least(${after ?? start}::timestamptz, ${after ?? first}::timestamptz)
        and start_at <= greatest(${isLast ? end : last}::timestamptz, ${last}::timestamptz)
        and start_at is distinct from ${after}::timestamptz`;
}

/**
 * Replaces the readings of a region by those of a read, except that nothing is removed: returns what the read lacks.
 * What lies within the range of a read that began later is left out, and so is what such a read showed. The caller
 * has locked the meter. It runs for each range of readings, and compares thousands of rows without sending them to
 * the process.
 */
export async function replacePart(tx: Executor, part: PartRead): Promise<PartReplaced> {
  const { meterId, readAt, range } = part;
  const { rows } = await hot(tx, 'replacePart').execute<{
    inserted: number;
    changed: number;
    noted: boolean;
    starts: string[] | null;
    seconds: number[] | null;
    units: string[] | null;
    ordinals: number[] | null;
  }>(sql`
    with incoming as materialized (${incomingReadings(part)}
    ), held as materialized (${heldReadings(part)}
    ), later as materialized (
      select span
      from ${intervalReads}
      where meter_id = ${meterId}
        and began > ${readAt}::timestamptz
    ), differing as materialized (
      select
        ${readingKey},
        i.ordinal is not null as is_listed,
        h.ordinal is not null as is_held,
        i.usage,
        i.quality,
        i.updated,
        i.unreadable
      from held h
        full join incoming i using (${readingKey})
      where (
          i.ordinal is null
          or h.ordinal is null
          or ${differ('i', 'h')}
        )
        and h.synced_at > ${readAt}::timestamptz is not true
    ), judged as materialized (
      select *
      from differing d
      where not exists (
          select
          from later
          where span @> tstzrange(d.start_at, ${endOf(sql`d`)})
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
      array_agg(${canonical(sql`start_at`)}) as starts,
      array_agg(granularity_seconds) as seconds,
      array_agg(usage_units) as units,
      array_agg(ordinal) as ordinals
    from absent`);
  const [row] = rows;
  const { starts, seconds, units, ordinals } = row ?? {};
  return {
    inserted: row?.inserted ?? 0,
    changed: row?.changed ?? 0,
    noted: row?.noted === true,
    absent: {
      startAt: starts ?? [],
      seconds: seconds ?? [],
      usageUnits: units ?? [],
      ordinal: ordinals ?? [],
    },
  };
}
