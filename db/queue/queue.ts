import { inArray, type SQL, sql } from 'drizzle-orm';
import { eventKinds, type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import type { CatchUpKind, Queue } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { tableOf } from '../resources.ts';
import { journal } from '../schema/metersync.ts';

/**
 * The pending events of the journal are a queue: each waits until `due_at`, when its record is read
 * again. `queue` says whose listing has the record: it is the kind and the owner, which is a
 * company, or the meter of a range of readings.
 *
 * Statements that change events lock them with `for no key update skip locked`: a locked event is
 * recorded again by another session, which has yet to lock its record, so that waiting for it could
 * be a deadlock.
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

/** The owner in the queue of an event. */
export const ownerOf = (event: SQL): SQL =>
  sql`substr(${event}.queue, strpos(${event}.queue, '/') + 1)`;

/** Selects the pending events that wait for the listings of a company. */
export const waitingForCompany = (db: Executor, companyId: string) =>
  db
    .select({})
    .from(journal)
    .where(inArray(journal.queue, [`connection/${companyId}`, `document/${companyId}`]));

/** Whether events about a record are pending; for statements that test each row, and look it up for each. */
export const hasPending = (kind: RecordEventKind, recordId: SQL): SQL => sql`exists (
      select from ${journal} waiting
      where waiting.record_id = ${recordId}
        and waiting.kind = ${kind}
        and waiting.outcome = 'pending'
      offset 0
    )`;

/** Pending events as a table `e`, locked. */
export const pendingOf = {
  records: (kind: 'connections' | 'documents', ids: readonly string[]): SQL => sql`(
          select *
          from ${journal}
          where record_id = any(${array([...ids].sort(), 'text')})
            and kind = ${eventKind[kind]}
            and outcome = 'pending'
          for no key update skip locked
        ) e`,
  owner: (kind: CatchUpKind, owner: string): SQL => sql`(
          select *
          from ${journal}
          where queue = ${queueOf(eventKind[kind], owner)}
          for no key update skip locked
        ) e`,
} as const;

/** The wait after so many failed attempts: it doubles up to the longest of `recordPolicy`. */
export const backOff = (
  tried: SQL,
  firstSeconds: number = recordPolicy.waitFirstSeconds,
): SQL => sql`make_interval(secs => least(
            ${recordPolicy.waitMaxSeconds}::float8,
            ${firstSeconds}::float8 * power(2, least(${tried}, 30))
          ))`;

/** Makes the pending events of records due at once; returns the number of these records. */
export async function lookAtOnce(
  db: Executor,
  kind: 'connection' | 'document',
  recordIds: readonly string[],
): Promise<number> {
  if (recordIds.length === 0) return 0;
  const { rows } = await db.execute<{ record_id: string }>(sql`
    update ${journal} set due_at = least(due_at, clock_timestamp())
    where id = any(array(select id from ${pendingOf.records(`${kind}s`, recordIds)}))
    returning record_id`);
  return new Set(rows.map(({ record_id }) => record_id)).size;
}

/** Makes missing events pending again if their state or a newer state of these records was read now. */
export async function requeueMissing(
  tx: Executor,
  resource: 'documents' | 'connections',
  seen: readonly string[],
): Promise<void> {
  if (seen.length === 0) return;
  await prepared(tx, 'requeueMissing').execute(sql`
    update ${journal} set
      outcome = 'pending',
      settled_at = null,
      queue = kind || '/' || coalesce(company_id::text, record_id),
      due_at = clock_timestamp(),
      error = null,
      error_code = null,
      attempts = 0
    where id = any(array(
        select e.id
        from unnest(${array([...seen].sort(), 'uuid')}) as asked (id)
          cross join lateral (
            select id, occurred_at
            from ${journal}
            where aside = 'missing'
              and record_id = asked.id::text
              and kind = ${eventKind[resource]}
            for no key update skip locked
          ) e
          join ${tableOf(resource)} r on r.id = asked.id
        where e.occurred_at <= r.raw_updated
      ))`);
}
