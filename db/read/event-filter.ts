import { and, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { EventOutcome } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import { events, journal, settlements, staleRecords } from '../schema/metersync.ts';
import type { Most } from './counted.ts';

/**
 * Selects events of the journal; an absent bound does not restrict. Times are ISO 8601, of the
 * receiver's clock.
 */
export interface EventFilter {
  readonly ids?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly outcome?: EventOutcome | undefined;
  readonly recordId?: string | undefined;
  readonly companyId?: string | undefined;
  readonly code?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export const event = alias(events, 'event');

/** Whether an event matches; the statement leaves out absent bounds. */
export function matching(filter: EventFilter): SQL {
  const { ids, type, outcome, recordId, companyId, code, since, until } = filter;
  const bounds: readonly (SQL | undefined)[] = [
    ids && sql`${event.id} = any(${array(ids, 'text')})`,
    given(type, (value) => sql`${event.type} = ${value}`),
    given(outcome, (value) => sql`${event.outcome} = ${value}`),
    given(recordId, (value) => sql`${event.recordId} = ${value}`),
    given(companyId, (value) => sql`${event.companyId} = ${value}::uuid`),
    given(code, (value) => sql`${event.errorCode} = ${value}`),
    given(since, (value) => sql`${event.receivedAt} >= ${value}::timestamptz`),
    given(until, (value) => sql`${event.receivedAt} < ${value}::timestamptz`),
  ];
  return and(...bounds) ?? sql`true`;
}

/** Bounds by a value if it is given; an empty text counts as given. */
const given = (value: string | undefined, bound: (value: string) => SQL): SQL | undefined =>
  value === undefined ? undefined : bound(value);

/**
 * Ids of the events of records that had to be read, as stale records and settlements name them.
 * With `offset 0` the events of each record are looked up; otherwise all pending ones are read.
 */
export const eventsOf = (records: SQL): SQL => sql`
      select waiting.id
      from ${records} r
        cross join lateral (
          select ${journal.id}
          from ${journal}
          where ${journal.recordId} = r.record_id
            and ${journal.kind} = r.kind
            and ${journal.arrivedAs} = 'pending'
          offset 0
        ) waiting
      where r.kind <> 'interval'
      union all
      select r.record_id
      from ${records} r
      where r.kind = 'interval'`;

/**
 * Records with events settled with this outcome. It is no parameter, so that a partial index serves
 * it.
 */
const settledAs = (outcome: 'missing' | 'dead', most: Most): SQL => sql`(
        select distinct
          kind,
          record_id
        from (
          select
            ${settlements.kind},
            ${settlements.recordId}
          from ${settlements}
          where ${settlements.outcome} = ${sql.raw(`'${outcome}'`)}
          ${most === null ? sql`` : sql`order by ${settlements.settledAt} desc limit ${most}`}
        ) settled
      )`;

/** Events that arrived with this outcome. */
const arrivedAs = (outcome: 'dead' | 'ignored', most: Most): SQL => sql`
      select id
      from (
        select ${journal.id}
        from ${journal}
        where ${journal.arrivedAs} = ${sql.raw(`'${outcome}'`)}
        ${most === null ? sql`` : sql`limit ${most}`}
      ) arrived`;

/** Ids of the events that may have a rare outcome, to avoid a search among all events. */
const fewOf: Readonly<Partial<Record<EventOutcome, (most: Most) => SQL>>> = {
  pending: () => eventsOf(sql`${staleRecords}`),
  missing: (most) => eventsOf(settledAs('missing', most)),
  dead: (most) => sql`${eventsOf(settledAs('dead', most))}
      union all${arrivedAs('dead', most)}`,
  ignored: (most) => arrivedAs('ignored', most),
};

/**
 * The source of events: the few of a record or of a rare outcome are selected before the newest
 * are. Of dead, missing and ignored ones it reads at most so many, or their records.
 */
export function amongThem({ recordId, outcome }: EventFilter, most: Most = null): SQL {
  if (recordId !== undefined)
    return sql`(
      select *
      from ${events}
      where ${events.recordId} = ${recordId}
      offset 0
    ) ${event}`;
  const few = outcome === undefined ? undefined : fewOf[outcome]?.(most);
  if (few === undefined) return sql`${events} ${event}`;
  return sql`(
      select distinct id
      from (${few}
      ) ids
    ) few
      cross join lateral (
        select *
        from ${events}
        where ${events.id} = few.id
        offset 0
      ) ${event}`;
}
