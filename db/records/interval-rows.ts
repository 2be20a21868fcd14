import { type SQL, sql } from 'drizzle-orm';
import { QueryBuilder } from 'drizzle-orm/pg-core';
import { array } from '../connection/arrays.ts';
import { ordinalOf, timeKey } from './interval-key.ts';
import type { IntervalColumns } from './interval-text.ts';

/** A query for readings of which several may have the same time. Postgres parses their times. */
export const anyReadings = (columns: IntervalColumns): SQL => sql`
      select
        *,
        ${ordinalOf(sql`id`)}
      from ${new QueryBuilder().select(parsed).from(parsedReadings(columns))} parsed`;

/** The columns of readings as Postgres parses them. */
export const parsed = {
  startAt: sql`start_at`.as('start_at'),
  granularitySeconds: sql`coalesce(
      granularity,
      extract(epoch from metersync.read_time(ends) - start_at)::int
    )`.as('granularity_seconds'),
  usageUnits: sql`coalesce(units, '')`.as('usage_units'),
  usage: sql`usage`.as('usage'),
  quality: sql`quality`.as('quality'),
  updated: sql`metersync.read_time(changed)`.as('updated'),
  unreadable: sql`unreadable::jsonb`.as('unreadable'),
  id: sql`id`.as('id'),
};

/** A table expression for readings, from which `parsed` computes its columns. */
export const parsedReadings = (columns: IntervalColumns): SQL => sql`unnest(
            ${array(columns.startAt, 'text')},
            ${array(columns.endAt, 'text')},
            ${array(columns.granularitySeconds, 'int')},
            ${array(columns.usage, 'numeric')},
            ${array(columns.usageUnits, 'text')},
            ${array(columns.quality, 'text')},
            ${array(columns.updated, 'text')},
            ${array(columns.unreadable ?? [], 'text')},
            ${array(columns.id, 'text')}
          ) as t (starts, ends, granularity, usage, units, quality, changed, unreadable, id)
          cross join lateral (select metersync.read_time(starts) as start_at) times`;

/** A query for plain readings of which no two have the same key. */
export function distinctReadings(columns: IntervalColumns, seconds: readonly number[]): SQL {
  return sql`
      select
        start_at,
        granularity_seconds,
        coalesce(usage_units, '') as usage_units,
        0 as ordinal,
        usage,
        quality,
        updated,
        unreadable::jsonb
      from unnest(
        ${array(columns.startAt, 'timestamptz')},
        ${array(seconds, 'int')},
        ${array(columns.usageUnits, 'text')},
        ${array(columns.usage, 'numeric')},
        ${array(columns.quality, 'text')},
        ${array(columns.updated, 'timestamptz')},
        ${array(columns.unreadable ?? [], 'text')}
      ) as t (${timeKey}, usage, quality, updated, unreadable)`;
}
