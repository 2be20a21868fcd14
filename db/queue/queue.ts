import { inArray, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import {
  deletingTypes,
  eventKinds,
  type RecordEventKind,
  recordEventKinds,
} from '../../contract/event.ts';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind, Queue } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { tableOf } from '../resources.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';

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

/** Whether events of a type delete their record. */
export const isDeletion = (type: SQLWrapper): SQL =>
  sql`${type} = any(${array(deletingTypes, 'text')})`;

/** The payload of an event as a table of one row, or of no row if the payload was dropped. */
export const payloadOf = (id: SQLWrapper): SQL => sql`(
        select p.payload
        from ${eventPayloads} p
        where p.id = ${id}
        offset 0
      )`;

/**
 * Locks events to change their outcome, and skips locked events: another session records them again
 * and has yet to lock their records, so waiting for it could be a deadlock.
 */
export const unlessRecordedAnew: SQL = sql.raw('for no key update skip locked');

/** The assignments that settle an event with an outcome, for an `update` of the journal. */
export const settledAs = (
  outcome: SQL,
  { error, errorCode, attempts }: { error?: SQL; errorCode?: SQL; attempts?: SQL } = {},
): SQL => sql`outcome = ${outcome},
        settled_at = statement_timestamp(),
        queue = null,
        due_at = null,
        error = ${error ?? sql`null`},
        error_code = ${errorCode ?? sql`null`},
        attempts = ${attempts ?? sql`0`}`;

/** The queue of an event of the journal. */
export const queueOfEvent: SQL = sql.raw(`kind || '/' || coalesce(company_id::text, record_id)`);

/** The assignments that make an event wait again, for an `update` of the journal. */
export const waitingAgain: SQL = sql`outcome = 'pending',
        settled_at = null,
        queue = ${queueOfEvent},
        due_at = clock_timestamp(),
        error = null,
        error_code = null,
        attempts = 0`;

/** The assignments that make an event wait after another failed attempt, for an `update` of the journal. */
export const postponedAs = ({
  tried,
  reason,
  wait = backOff(tried),
}: {
  readonly tried: SQL;
  readonly reason: { readonly code: FailureCode; readonly message: string };
  readonly wait?: SQL;
}): SQL => sql`attempts = ${tried} + 1,
        error_code = ${reason.code},
        error = ${reason.message},
        due_at = clock_timestamp() + ${wait}`;

/** The wait after so many failed attempts: it doubles up to the longest of `recordPolicy`. */
export const backOff = (
  tried: SQL,
  firstSeconds: number = recordPolicy.waitFirstSeconds,
): SQL => sql`make_interval(secs => least(
            ${recordPolicy.waitMaxSeconds}::float8,
            ${firstSeconds}::float8 * power(2, least(${tried}, 30))
          ))`;

/** Steps that make missing events pending again if their state or a newer state was read now. */
export const requeueMissing = (
  resource: 'documents' | 'connections',
  seen: readonly string[],
): SQL => sql`missing as materialized (
      select e.id
      from unnest(${array([...seen].sort(), 'text')}) as asked (record_id)
        cross join lateral (
          select id, occurred_at
          from ${journal}
          where aside = 'missing'
            and record_id = asked.record_id
            and kind = ${eventKind[resource]}
          offset 0
          ${unlessRecordedAnew}
        ) e
        cross join lateral (
          select raw_updated
          from ${tableOf(resource)}
          where id = asked.record_id::uuid
          offset 0
        ) r
      where e.occurred_at <= r.raw_updated
    ), requeued as (
      update ${journal} set
        ${waitingAgain}
      where id = any(array(select id from missing))
    )`;
