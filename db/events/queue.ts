import { inArray, type SQL, sql } from 'drizzle-orm';
import { eventKinds, type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import type { CatchUpKind, Queue } from '../../contract/names.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { unlessRecordedAnew } from './outcomes.ts';

/**
 * The pending events of the journal are a queue: each waits until `due_at`, when its record is read
 * again. `queue` says whose listing has the record: it is the kind and the owner, which is a
 * company, or the meter of a range of readings.
 */

/**
 * Whether an event of the journal is pending. It has no parameter: for plans that serve any parameters,
 * Postgres uses a partial index only if the text of the statement implies its condition.
 */
export const isPending: SQL = sql`${journal.outcome} = 'pending'`;

/** The kind of events for which a catch-up reads records. */
export const eventKind = Object.fromEntries(
  recordEventKinds.map((kind) => [eventKinds[kind].plural, kind]),
) as Readonly<Record<CatchUpKind, RecordEventKind>>;

/** The name of an owner's queue, as the journal has it. */
export const queueName = ({ kind, owner }: Queue): string => `${eventKind[kind]}/${owner}`;

/** The queue of an owner, for a statement. */
export const queueOf = (kind: RecordEventKind, owner: SQL | string): SQL =>
  typeof owner === 'string'
    ? sql`${`${kind}/${owner}`}`
    : sql`${sql.raw(`'${kind}/'`)} || ${owner}`;

/** Selects the pending events that wait for the listings of a company. */
export const waitingForCompany = (db: Executor, companyId: string) =>
  db
    .select({})
    .from(journal)
    .where(inArray(journal.queue, [`connection/${companyId}`, `document/${companyId}`]))
    .offset(literal(0));

/** The owner in the queue of an event. */
export const ownerOf = (event: SQL): SQL =>
  sql`substr(${event}.queue, strpos(${event}.queue, '/') + 1)`;

/** The record that an event waits for, as reads name it: a range of readings is named by its event. */
export const waitsFor = (event: SQL): SQL =>
  sql`case ${event}.kind when 'interval' then ${event}.id else ${event}.record_id end`;

/** Whether events about a record are pending; for statements that test each row. */
export const hasPending = (kind: RecordEventKind, recordId: SQL): SQL => sql`exists (
          select
          from ${journal} waiting
          where waiting.record_id = ${recordId}
            and waiting.kind = ${kind}
            and waiting.outcome = 'pending'
          offset 0
        )`;

/**
 * Pending events as a table `e`, locked. Events that another session records again are left out:
 * see `unlessRecordedAnew`.
 */
export const pendingOf = {
  records: (kind: 'connections' | 'documents', ids: readonly string[]): SQL => sql`
        unnest(${array([...ids].sort(), 'text')}) as asked (id)
        cross join lateral (
          select *
          from ${journal}
          where record_id = asked.id
            and kind = ${eventKind[kind]}
            and outcome = 'pending'
          offset 0
          ${unlessRecordedAnew}
        ) e`,
  owner: (kind: CatchUpKind, owner: string): SQL => sql`(
          select *
          from ${journal}
          where queue = ${queueOf(eventKind[kind], owner)}
          offset 0
          ${unlessRecordedAnew}
        ) e`,
} as const;

/** Makes the pending events of records due at once; returns the number of these records. */
export async function lookAtOnce(
  db: Executor,
  kind: 'connection' | 'document',
  recordIds: readonly string[],
): Promise<number> {
  if (recordIds.length === 0) return 0;
  const pending = db.select({ id: sql`e.id` }).from(pendingOf.records(`${kind}s`, recordIds));
  const made = await db
    .update(journal)
    .set({ dueAt: sql`least(${journal.dueAt}, clock_timestamp())` })
    .where(sql`${journal.id} = any(array${pending})`)
    .returning({ recordId: journal.recordId });
  return new Set(made.map(({ recordId }) => recordId)).size;
}
