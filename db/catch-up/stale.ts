import { type SQL, sql } from 'drizzle-orm';
import { eventKinds, type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, staleRecords } from '../schema/metersync.ts';

/** The kinds of records that can be stale. */
export type StaleKind = RecordEventKind;

/** The kind of events for which a catch-up reads records. */
export const eventKind = Object.fromEntries(
  recordEventKinds.map((kind) => [eventKinds[kind].plural, kind]),
) as Readonly<Record<CatchUpKind, StaleKind>>;

/** The catch-up for a kind of events. */
export const catchUpOf = (kind: SQL): SQL =>
  sql`case ${kind} ${sql.join(
    recordEventKinds.map((one) => sql`when ${one} then ${eventKinds[one].plural}`),
    sql` `,
  )} end`;

/** The key of a stale record. With the id of an owner, the queue of the owner's stale records. */
export const keyOf = (kind: StaleKind, id: SQL | string): SQL =>
  typeof id === 'string' ? sql`${`${kind}/${id}`}` : sql`${sql.raw(`'${kind}/'`)} || ${id}`;

/** Whether an event is about a record. Each event about readings is a stale record of its own. */
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
 * Stale records as a table `s`, locked in the order that all sessions use. With conditions other
 * than the key or the queue, the planner might use another index.
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
  const waiting = db.select({ key: sql`s.key` }).from(staleOf.records(`${kind}s`, recordIds));
  const { rowCount } = await db
    .update(staleRecords)
    .set({ dueAt: sql`least(${staleRecords.dueAt}, clock_timestamp())` })
    .where(sql`${staleRecords.key} = any(array${waiting})`);
  return rowCount ?? 0;
}

/** A record that is stale, or was. */
export interface StaleRecord extends Record<string, unknown> {
  readonly kind: StaleKind;
  readonly record_id: string;
}
