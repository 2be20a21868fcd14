import { sql } from 'drizzle-orm';
import { columnNames } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import {
  columnsOfReading,
  differ,
  type ReadRange,
  readingKey,
  startsWithin,
} from '../records/interval-key.ts';
import { anyReadings, distinctReadings } from '../records/interval-rows.ts';
import { inRegion, type Region } from '../records/interval-span.ts';
import type { IntervalColumns, PlainReadings } from '../records/interval-text.ts';
import { intervals } from '../schema/utility.ts';

/** Readings of a meter to write, and what the statement needs to know about them. */
export interface ReadingsToWrite {
  readonly meterId: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  readonly columns: IntervalColumns;
  /** Set if no time has to be parsed. */
  readonly plain: PlainReadings | undefined;
  /** The region in which rows are compared. */
  readonly region: Region;
  /** The range that the readings are listed for. */
  readonly range: ReadRange;
  /** Whether unchanged readings without `updated` also count as read now. */
  readonly confirms: boolean;
}

export interface ReadingsMerged {
  readonly inserted: number;
  readonly changed: number;
  /** Whether the warehouse has readings in the region that are not listed, or that are newer. */
  readonly doubtful: boolean;
}

/**
 * Compares readings with existing rows, and writes new and changed readings. It runs for each range
 * of readings, and compares thousands of rows without sending them to the process. Measured: 1.2 ms
 * and 431 blocks for 96 new readings; 0.58 ms and 13 blocks for as many unchanged readings.
 */
export async function mergeIntervals(
  db: Executor,
  { meterId, readAt, columns, plain, region, range, confirms }: ReadingsToWrite,
): Promise<ReadingsMerged> {
  const incoming = plain?.distinct
    ? distinctReadings(columns, plain.seconds)
    : anyReadings(columns);
  const { rows } = await hot(db, 'mergeIntervals').execute<
    ReadingsMerged & Record<string, unknown>
  >(sql`
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
  return rows[0] ?? { inserted: 0, changed: 0, doubtful: false };
}
