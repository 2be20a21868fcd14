import { type SQL, sql } from 'drizzle-orm';
import { eventKinds, type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { journal, staleRecords } from '../schema/metersync.ts';

/** What can be stale. */
export type StaleKind = RecordEventKind;

/** The kind of events that a catch-up is for. */
export const eventKind = Object.fromEntries(
  recordEventKinds.map((kind) => [eventKinds[kind].plural, kind]),
) as Readonly<Record<CatchUpKind, StaleKind>>;

/** The catch-up for a kind of events. */
export const catchUpOf = (kind: SQL): SQL =>
  sql`case ${kind} ${sql.join(
    recordEventKinds.map((one) => sql`when ${one} then ${eventKinds[one].plural}`),
    sql` `,
  )} end`;

/** The key of a stale record, or with the id of an owner its queue. */
export const keyOf = (kind: StaleKind, id: SQL | string): SQL =>
  typeof id === 'string' ? sql`${`${kind}/${id}`}` : sql`${`${kind}/`} || ${id}`;

/** Whether an event of the journal is about a record; of readings each event is a record of its own. */
export const isOf = (kind: StaleKind, recordId: SQL): SQL =>
  kind === 'interval'
    ? sql`${journal.id} = ${recordId}`
    : sql`${journal.recordId} = ${recordId} and ${journal.kind} = ${kind}`;

/** Whether a record is stale; for statements that test each row. */
export const isStale = (kind: 'connection' | 'document', recordId: SQL): SQL => sql`exists (
          select
          from ${staleRecords} s
          where s.key = ${keyOf(kind, recordId)}
          offset 0
        )`;

/**
 * Stale records as a table `s`, locked in the order that all sessions use. They are looked up only by their
 * keys or their queue, because with another condition the planner may prefer its index.
 */
export const staleOf = {
  records: (kind: CatchUpKind, ids: readonly string[]): SQL => {
    const keys = [...ids].sort().map((id) => `${eventKind[kind]}/${id}`);
    return sql`unnest(${array(keys, 'text')}) as asked (key) cross join lateral (
          select *
          from ${staleRecords}
          where key = asked.key
          offset 0
          for update
        ) s`;
  },
  owner: (kind: CatchUpKind, owner: string): SQL => sql`(
      select key
      from (
            select key
            from ${staleRecords}
            where queue = ${keyOf(eventKind[kind], owner)}
            offset 0
          ) theirs
          order by key
        ) asked
        cross join lateral (
          select *
          from ${staleRecords}
          where key = asked.key
          offset 0
          for update
        ) s`,
} as const;

/** Makes stale records due at once; returns how many there are. */
export async function lookAtOnce(
  db: Executor,
  kind: 'connection' | 'document',
  recordIds: readonly string[],
): Promise<number> {
  if (recordIds.length === 0) return 0;
  const result = await db.execute(sql`
    with waiting as materialized (
      select s.key
      from ${staleOf.records(`${kind}s`, recordIds)}
    )
    update ${staleRecords}
    set due_at = least(due_at, clock_timestamp())
    where key = any(array(select key from waiting))`);
  return result.rowCount ?? 0;
}

/** A record that is stale, or was. */
export interface StaleRecord extends Record<string, unknown> {
  readonly kind: StaleKind;
  readonly record_id: string;
}

/** Refreshes stale records of several kinds, locked in the order of all. */
export async function refreshEach(db: Executor, records: readonly StaleRecord[]): Promise<void> {
  const byKind = Map.groupBy(records, ({ kind }) => kind);
  for (const [kind, ofKind] of [...byKind].sort(([a], [b]) => (a < b ? -1 : 1))) {
    await refreshStale(
      db,
      kind,
      ofKind.map(({ record_id }) => record_id),
    );
  }
}

/**
 * Rebuilds stale records from the journal's pending events, after some of a record's events were settled, or
 * settled events became pending again. Attempts start again.
 */
export async function refreshStale(
  db: Executor,
  kind: StaleKind,
  recordIds: readonly string[],
): Promise<void> {
  // Some of its events may also be settled, unless the row has changed since this statement began.
  const cameMeanwhile = sql`(s.record_id, s.last_event_at, s.events) not in (
            select p.record_id, p.known_until, p.known_events
            from pending p
            where p.known_until is not null
          )`;
  await hot(db, 'refreshStale').execute(sql`
    with pending as materialized (
      select
        asked.record_id,
        existing.last_event_at as known_until,
        existing.events as known_events,
        reported.*
      from (
          select distinct unnest(${array(recordIds, 'text')}) as record_id
          order by 1
        ) asked
        left join lateral (
          select s.last_event_at, s.events
          from ${staleRecords} s
          where s.key = ${keyOf(kind, sql`asked.record_id`)}
          offset 0
        ) existing on true
        cross join lateral (
          select
            count(*)::int as events,
            min(recorded_at) as since,
            max(recorded_at) as last_event_at,
            max(occurred_at) as wanted,
            (array_agg(
              coalesce(company_id::text, ${journal.recordId}) order by occurred_at desc, id
            ))[1] as owner
          from ${journal}
          where ${isOf(kind, sql`asked.record_id`)}
            and outcome = 'pending'
        ) reported
    ), settled as (
      delete from ${staleRecords} s
      using pending p
      where s.key = ${keyOf(kind, sql`p.record_id`)}
        and p.events = 0
        -- The number too: an event that came meanwhile may have been recorded before the last.
        and (s.last_event_at, s.events) = (p.known_until, p.known_events)
    )
    insert into ${staleRecords} as s
      (kind, record_id, owner, events, since, last_event_at, wanted, due_at)
    select ${kind}, record_id, owner, events, since, last_event_at, wanted, clock_timestamp()
    from pending
    where events > 0
    order by record_id
    -- Keeps events that came meanwhile, which this statement cannot see.
    on conflict (key) do update set
      -- Never fewer than there are: a read takes the record for settled once it settled as many.
      events = greatest(
        excluded.events,
        case
          when ${cameMeanwhile} then s.events + greatest(0, excluded.events - coalesce((
            select p.known_events from pending p where p.record_id = s.record_id
          ), 0))
        end
      ),
      since = least(
        excluded.since,
        case when ${cameMeanwhile} then s.since end
      ),
      wanted = greatest(
        excluded.wanted,
        case when ${cameMeanwhile} then s.wanted end
      ),
      last_event_at = greatest(
        excluded.last_event_at,
        case when ${cameMeanwhile} then s.last_event_at end
      ),
      due_at = excluded.due_at,
      attempts = 0,
      tried_since = null,
      error = null,
      error_code = null`);
}
