import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { TracedKind } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import {
  connections,
  documents,
  earlierConnections,
  earlierDocuments,
  earlierMeters,
  meters,
} from '../schema/utility.ts';

/** A change of a record: its time, its cause, and the fields that differ. */
export interface RecordChange {
  readonly at: string;
  /** An event or a run; null if unknown, as when a catch-up read the record again. */
  readonly byKind: 'event' | 'run' | null;
  readonly by: string | null;
  readonly fields: readonly ChangedField[];
}

/** A field of the record as the service sent it, as JSON; null if absent. */
export interface ChangedField {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

const tables = {
  document: { now: documents, earlier: earlierDocuments, id: 'uuid' },
  connection: { now: connections, earlier: earlierConnections, id: 'uuid' },
  meter: { now: meters, earlier: earlierMeters, id: 'text' },
} as const;

/** Most changes that are returned, the latest. */
const changesMax = 50;

/**
 * Reads the changes of a record, oldest first: each earlier state compared with the next. The first read is
 * not a change.
 */
export async function readChanges(
  db: Executor,
  kind: TracedKind,
  id: string,
): Promise<RecordChange[]> {
  const { now, earlier, id: type } = tables[kind];
  const key = sql`${id}::${sql.raw(type)}`;
  const { rows } = await db.execute<RecordChange & Record<string, unknown>>(sql`
    with states as (
      select
        valid_to,
        ended_by_kind,
        ended_by,
        raw is not null as was_read,
        ${stateOf(earlier)} as state
      from ${earlier}
      where id = ${key}
      union all
      select
        'infinity',
        null,
        null,
        null,
        ${stateOf(now)}
      from ${now}
      where id = ${key}
    ), followed as (
      select
        *,
        lead(state) over (order by valid_to) as next
      from states
    ), latest as (
      select *
      from followed
      where next is not null
        and was_read
      order by valid_to desc
      limit ${changesMax}
    )
    select
      valid_to as at,
      ended_by_kind as "byKind",
      ended_by as by,
      coalesce(changed.fields, '[]') as fields
    from latest
      left join lateral (
        select jsonb_agg(
          jsonb_build_object('field', key, 'before', b.value::text, 'after', a.value::text)
          order by key
        ) as fields
        from jsonb_each(state) b
          full join jsonb_each(next) a using (key)
        where b.value is distinct from a.value
      ) changed on true
    order by valid_to`);
  return rows;
}

/** The compared parts of a state: the record, and whether it is deleted. */
const stateOf = (table: PgTable): SQL =>
  sql`coalesce(${table}.raw, '{}') || jsonb_strip_nulls(
        jsonb_build_object('(deleted)', ${table}.deleted_reason)
      )`;
