import { and, isNull, type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { settledAs, unlessRecordedAnew } from '../events/settling.ts';
import { journal, staleRecords } from '../schema/metersync.ts';
import { documents } from '../schema/utility.ts';
import { eventKind, isOf, refreshEach, type StaleRecord, staleOf } from './stale.ts';

/** Why records wait: a failure of the catalogue, and its message. */
export interface WaitingReason {
  readonly code: FailureCode;
  readonly message: string;
}

/** How records are postponed. */
export interface Postponement {
  /** Only records that were stale by then; all when absent. */
  readonly since?: string;
  /** Only records that this owner still has; all when absent. */
  readonly owner?: string;
  /** Only records that were due then; by default, those due now. */
  readonly dueAt?: string;
  /** Seconds that each waits at least. */
  readonly leastSeconds?: number;
  /** Attempts for the same reason after which a record's events are missing; never when absent. */
  readonly attemptsMax?: number;
}

/** The wait after so many failed attempts: twice the one before, up to the longest of `recordPolicy`. */
export const backOff = (
  tried: SQL,
  firstSeconds: number = recordPolicy.waitFirstSeconds,
): SQL => sql`make_interval(secs => least(
            ${recordPolicy.waitMaxSeconds}::float8,
            ${firstSeconds}::float8 * power(2, least(${tried}, 30))
          ))`;

/**
 * Backs off stale records, longer with each attempt that fails for the same reason. Those with
 * `attemptsMax` attempts are given up: the events of these attempts are `missing`. An attempt that
 * new events brought forward is not counted: a burst of events must not use up the patience of
 * minutes in seconds. Returns how many wait, and the ids of records that were given up.
 */
export async function postpone(
  db: Executor,
  kind: CatchUpKind,
  records: SQL,
  { code, message }: WaitingReason,
  { dueAt, since, owner, leastSeconds = 0, attemptsMax }: Postponement = {},
): Promise<{ waiting: number; givenUp: string[] }> {
  const triedAt = dueAt === undefined ? sql`clock_timestamp()` : sql`${dueAt}::timestamptz`;
  const tooOften =
    attemptsMax === undefined
      ? sql`false`
      : sql`coalesce(s.error_code = ${code} and s.attempts >= ${attemptsMax}, false)`;
  const result = await hot(db, 'postpone').execute<StaleRecord & { given_up: boolean }>(sql`
    with waiting as materialized (
      select
        s.*,
        ${tooOften} as given_up,
        case when s.error_code = ${code} then s.attempts else 0 end as tried,
        case when s.error_code = ${code} then s.tried_since end as first_tried
      from ${records}
      where s.due_at <= ${triedAt}
        ${since === undefined ? sql`` : sql`and s.since <= ${since}::timestamptz`}
        ${owner === undefined ? sql`` : sql`and s.owner = ${owner}`}
    ), lost as materialized (
      select e.id, w.error, w.error_code, w.attempts
      from waiting w
        cross join lateral (
          select id
          from ${journal}
          where ${isOf(eventKind[kind], sql`w.record_id`)}
            and recorded_at between w.since and coalesce(w.first_tried, ${triedAt})
            and outcome = 'pending'
          offset 0
          ${unlessRecordedAnew}
        ) e
      where w.given_up
    ), missing as (
      update ${journal} e set
        ${settledAs(sql`'missing'`, {
          error: sql`lost.error`,
          errorCode: sql`lost.error_code`,
          attempts: sql`lost.attempts`,
        })}
      from lost
      where e.id = any(array(select id from lost))
        and e.id = lost.id
    ), later as (
      update ${staleRecords} s set
        -- What new events brought forward is no attempt more.
        attempts = w.tried + case when w.tried > 0 and w.due_at <= w.last_event_at then 0 else 1 end,
        tried_since = coalesce(w.first_tried, ${triedAt}),
        error_code = ${code},
        error = ${message},
        due_at = case
          -- Records named again during the read are due at once.
          when s.last_event_at > ${triedAt} then s.last_event_at
          else clock_timestamp()
            + greatest(make_interval(secs => ${leastSeconds}::float8), ${backOff(sql`w.tried`)})
        end
      from waiting w
      where s.key = any(array(select key from waiting where not given_up))
        and w.key = s.key
    )
    select kind, record_id, given_up
    from waiting`);
  const givenUp = result.rows.filter((row) => row.given_up);
  await refreshEach(db, givenUp);
  return {
    waiting: result.rows.length - givenUp.length,
    givenUp: givenUp.map((row) => row.record_id),
  };
}

/** Why documents wait whose usage was incomplete. Once they are given up, it stays as it is. */
export const usageUnstable: WaitingReason = {
  code: 'LISTING_UNSTABLE',
  message: 'the service does not show all usage of the document, or contradicts itself about it',
};

/**
 * Backs off events of documents that could not be read for one reason. After
 * `olderStateAttemptsMax` attempts that fail at the service they are `missing`. A document that was
 * never read is tombstoned then.
 */
export async function postponeDocuments(
  db: Executor,
  recordIds: readonly string[],
  readAt: string,
  reason: WaitingReason,
): Promise<void> {
  const givesUp = /^(SERVICE_|RECORD_NOT_SHOWN|LISTING_UNSTABLE)/.test(reason.code);
  const which = staleOf.records('documents', recordIds);
  const { givenUp } = await postpone(db, 'documents', which, reason, {
    dueAt: readAt,
    since: readAt,
    ...(givesUp ? { attemptsMax: recordPolicy.olderStateAttemptsMax } : {}),
  });
  if (givenUp.length === 0) return;
  await db
    .update(documents)
    .set({ deletedAt: sql`clock_timestamp()`, deletedReason: 'not_found' })
    .where(
      and(
        sql`${documents.id} = any(${array(givenUp, 'uuid')})`,
        isNull(documents.raw),
        isNull(documents.deletedAt),
      ),
    );
}

/** Postpones the due records of an owner: its work is parked with a reason that `status` prints. */
export async function parkOwner(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: WaitingReason,
): Promise<void> {
  await postpone(db, kind, staleOf.owner(kind, owner), reason, {
    leastSeconds: recordPolicy.parkedSeconds,
  });
}
