import { and, isNull, not, type SQL, sql } from 'drizzle-orm';
import type { FailureCode, WaitingReason } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';
import { backOff, eventKind, hasPending, pendingOf } from './queue.ts';

interface Postponement {
  /** When the read began that failed, by the warehouse's clock; now if absent. */
  readonly readAt?: string;
  /** Attempts for the same reason after which an event is missing; never if absent. */
  readonly attemptsMax?: number;
}

/**
 * Backs off pending events that were due when a read of their records began, or that nobody had tried
 * to read, for longer with each attempt that fails for the same reason. Events with `attemptsMax`
 * attempts become `missing`. An event that was not due yet keeps its attempts and its time. Otherwise a
 * burst of events would use up in seconds the attempts that are meant to last for minutes. Returns the
 * records whose events became missing; a range of readings is named by its event.
 */
export async function postpone(
  db: Executor,
  events: SQL,
  reason: WaitingReason,
  { readAt, attemptsMax }: Postponement = {},
): Promise<string[]> {
  const { rows } = await db.execute<{ record_id: string }>(sql`
    with read as (
      select coalesce(${readAt ?? null}::timestamptz, clock_timestamp()) as began
    ), failed as materialized (
      select
        e.id,
        case e.kind when 'interval' then e.id else e.record_id end as record_id,
        case when e.error_code = ${reason.code} then e.attempts else 0 end as tried
      from read
        cross join ${events}
      where e.recorded_at <= read.began
        and (e.due_at <= read.began or e.attempts = 0)
    ), judged as materialized (
      select *, coalesce(tried >= ${attemptsMax ?? null}::int, false) as given_up
      from failed
    ), missing as (
      update ${journal} e set
        outcome = 'missing',
        settled_at = statement_timestamp(),
        queue = null,
        due_at = null,
        error_code = ${reason.code},
        attempts = j.tried
      from judged j
      where e.id = any(array(select id from judged where given_up))
        and e.id = j.id
    ), later as (
      update ${journal} e set
        attempts = j.tried + 1,
        error_code = ${reason.code},
        error = ${reason.message},
        due_at = clock_timestamp() + ${backOff(sql`j.tried`)}
      from judged j
      where e.id = any(array(select id from judged where not given_up))
        and e.id = j.id
    )
    select distinct record_id
    from judged
    where given_up`);
  return rows.map(({ record_id }) => record_id);
}

/** Why documents wait if their usage was incomplete; if given up, their usage stays as it is. */
export const usageUnstable: WaitingReason = {
  code: 'LISTING_UNSTABLE',
  message: 'the service does not show all usage of the document, or contradicts itself about it',
};

/**
 * Backs off documents that could not be read. If the service is the cause, their events become
 * `missing` after `olderStateAttemptsMax` attempts, and documents never read are tombstoned.
 */
export async function postponeDocuments(
  db: Executor,
  recordIds: readonly string[],
  readAt: string,
  reason: WaitingReason,
): Promise<void> {
  const givesUp = /^(SERVICE_|RECORD_NOT_SHOWN|LISTING_UNSTABLE)/.test(reason.code);
  const givenUp = await postpone(db, pendingOf.records('documents', recordIds), reason, {
    readAt,
    ...(givesUp ? { attemptsMax: recordPolicy.olderStateAttemptsMax } : {}),
  });
  await tombstoneNeverRead(db, 'documents', givenUp);
}

/** The code with which events wait that name a company or a meter that the service does not show. */
export const unknownCode: FailureCode = 'UNKNOWN_TO_SERVICE';

/**
 * Backs off the due events of a company or meter that only events name. After `olderStateAttemptsMax`
 * attempts they are `missing`, and their records that were never read are tombstoned.
 */
export async function postponeUnknown(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: string,
): Promise<void> {
  const givenUp = await postpone(
    db,
    pendingOf.owner(kind, owner),
    { code: unknownCode, message: `${unknownCode}: ${reason}` },
    { attemptsMax: recordPolicy.olderStateAttemptsMax },
  );
  if (kind !== 'intervals') await tombstoneNeverRead(db, kind, givenUp);
}

/** Tombstones those records that only events wrote and for which no event waits: the service lacks them. */
export async function tombstoneNeverRead(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
): Promise<void> {
  if (recordIds.length === 0) return;
  const table = kind === 'documents' ? documents : connections;
  await db
    .update(table)
    .set({ absentSince: sql`clock_timestamp()`, absentBy: 'not_found' })
    .where(
      and(
        isAmong(table.id, recordIds, 'uuid'),
        isNull(table.raw),
        isNull(table.deletedAt),
        not(hasPending(eventKind[kind], sql`${table.id}::text`)),
      ),
    );
}

/**
 * Makes events due at once that wait because of these failures, and events pending that are missing
 * because of them, in batches. The next wait of each is short again. Returns the number of events.
 */
export async function reviveFailed(
  db: Executor,
  codes: readonly FailureCode[],
  batch: number = batches.eventsRevived,
): Promise<number> {
  let revived = 0;
  for (const revive of [hastenWaiting, reopenMissing])
    for (let found = batch; found >= batch; revived += found)
      found = await revive(db, codes, batch);
  return revived;
}

async function hastenWaiting(
  db: Executor,
  codes: readonly FailureCode[],
  batch: number,
): Promise<number> {
  const { rowCount } = await db.execute(sql`
    update ${journal} set
      due_at = clock_timestamp(),
      attempts = 0
    where id = any(array(
        select failed.id
        from unnest(${array(codes, 'text')}) as asked (code)
          cross join lateral (
            select id
            from ${journal}
            where error_code = asked.code
              and outcome = 'pending'
              and due_at > (select clock_timestamp())
            order by error_code, due_at
            limit ${batch}
            for no key update skip locked
          ) failed
        limit ${batch}
      ))`);
  return rowCount ?? 0;
}

async function reopenMissing(
  db: Executor,
  codes: readonly FailureCode[],
  batch: number,
): Promise<number> {
  const { rowCount } = await db.execute(sql`
    update ${journal} set
      outcome = 'pending',
      settled_at = null,
      queue = kind || '/' || coalesce(company_id::text, record_id),
      due_at = clock_timestamp(),
      error = null,
      error_code = null,
      attempts = 0
    where id = any(array(
        select id
        from ${journal}
        where aside = 'missing'
          and error_code = any(${array(codes, 'text')})
        order by aside_at
        limit ${batch}
        for no key update skip locked
      ))`);
  return rowCount ?? 0;
}
