import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { refreshStale } from '../hot/refresh-stale.ts';
import { journal, staleRecords } from '../schema/metersync.ts';
import { documents } from '../schema/utility.ts';
import { eventKind, isOf, staleOf } from './stale.ts';

/** Why records wait: a failure of the catalogue, and its message. */
export interface WaitingReason {
  readonly code: FailureCode;
  readonly message: string;
}

export interface Postponement {
  /** Only records that were already stale at this time; all records if absent. */
  readonly since?: string;
  /** Only records that this owner still has; all records if absent. */
  readonly owner?: string;
  /** Only records that were due at this time; by default, records that are due now. */
  readonly dueAt?: string;
  /** Minimum wait of each record, in seconds. */
  readonly leastSeconds?: number;
  /** Attempts for the same reason after which a record's events are missing; never if absent. */
  readonly attemptsMax?: number;
}

/** The wait after so many failed attempts: it doubles up to the longest of `recordPolicy`. */
export const backOff = (
  tried: SQL,
  firstSeconds: number = recordPolicy.waitFirstSeconds,
): SQL => sql`make_interval(secs => least(
            ${recordPolicy.waitMaxSeconds}::float8,
            ${firstSeconds}::float8 * power(2, least(${tried}, 30))
          ))`;

/**
 * Backs off stale records, for longer with each attempt that fails for the same reason. Records
 * with `attemptsMax` attempts are given up: events that came before the first of these attempts
 * become `missing`. An attempt that new events brought forward is not counted. Otherwise a burst of
 * events would use up in seconds the attempts that are meant to last for minutes. Returns how many
 * records wait, and the ids of records that were given up.
 */
export async function postpone(
  db: Executor,
  kind: CatchUpKind,
  records: SQL,
  { code, message }: WaitingReason,
  { dueAt, since, owner, leastSeconds = 0, attemptsMax }: Postponement = {},
): Promise<{ waiting: number; givenUp: string[] }> {
  const triedAt = dueAt === undefined ? sql`clock_timestamp()` : sql`${dueAt}::timestamptz`;
  const again = sql`s.error_code = ${code}`;
  const givenUp =
    attemptsMax === undefined
      ? sql`false`
      : sql`coalesce(${again} and s.attempts >= ${attemptsMax}, false)`;
  const waiting = db.$with('waiting').as(
    db
      .select({
        recordId: sql`s.record_id`.as('record_id'),
        key: sql`s.key`.as('key'),
        since: sql`s.since`.as('since'),
        dueAt: sql`s.due_at`.as('due_at'),
        error: sql`s.error`.as('error'),
        givenUp: givenUp.as('given_up'),
        tried: sql`case when ${again} then s.attempts else 0 end`.as('tried'),
        firstTried: sql`case when ${again} then s.tried_since end`.as('first_tried'),
      })
      .from(records)
      .where(
        and(
          sql`s.due_at <= ${triedAt}`,
          since === undefined ? undefined : sql`s.since <= ${since}::timestamptz`,
          owner === undefined ? undefined : sql`s.owner = ${owner}`,
        ),
      ),
  );
  const event = db
    .select({ id: journal.id })
    .from(journal)
    .where(
      and(
        isOf(eventKind[kind], sql`waiting.record_id`),
        sql`${journal.recordedAt} between waiting.since and coalesce(waiting.first_tried, ${triedAt})`,
        eq(journal.outcome, 'pending'),
      ),
    )
    .offset(literal(0))
    .for('no key update', { skipLocked: true })
    .as('event');
  const lost = db.$with('lost').as(
    db
      .select({
        id: event.id,
        error: sql`waiting.error`.as('error'),
        tried: sql`waiting.tried`.as('tried'),
      })
      .from(waiting)
      .crossJoinLateral(event)
      .where(sql`waiting.given_up`),
  );
  const missing = db.$with('missing').as(
    db
      .update(journal)
      .set({
        outcome: 'missing',
        settledAt: sql`statement_timestamp()`,
        error: sql`lost.error`,
        errorCode: code,
        attempts: sql`lost.tried`,
      })
      .from(lost)
      .where(and(sql`${journal.id} = any(array(select id from lost))`, eq(journal.id, lost.id)))
      .returning({ id: journal.id }),
  );
  const { lastEventAt } = staleRecords;
  const pause = sql`greatest(
    make_interval(secs => ${leastSeconds}::float8),
    ${backOff(sql`waiting.tried`)}
  )`;
  const later = db.$with('later').as(
    db
      .update(staleRecords)
      .set({
        attempts: sql`waiting.tried + case
          when waiting.tried > 0 and waiting.due_at <= ${lastEventAt} then 0
          else 1
        end`,
        triedSince: sql`coalesce(waiting.first_tried, ${triedAt})`,
        errorCode: code,
        error: message,
        // Records that events named again during the read are due at once.
        dueAt: sql`case
          when ${lastEventAt} > ${triedAt} then ${lastEventAt}
          else clock_timestamp() + ${pause}
        end`,
      })
      .from(waiting)
      .where(
        and(
          sql`${staleRecords.key} = any(array(select key from waiting where not given_up))`,
          eq(staleRecords.key, sql`waiting.key`),
        ),
      )
      .returning({ key: staleRecords.key }),
  );
  const postponed = await db
    .with(waiting, lost, missing, later)
    .select({ id: sql<string>`record_id`, isLost: sql<boolean>`given_up` })
    .from(waiting);
  const lostIds = postponed.flatMap(({ id, isLost }) => (isLost ? [id] : []));
  if (lostIds.length > 0) await refreshStale(db, eventKind[kind], lostIds);
  return { waiting: postponed.length - lostIds.length, givenUp: lostIds };
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
  const which = staleOf.records('documents', recordIds);
  const { givenUp } = await postpone(db, 'documents', which, reason, {
    dueAt: readAt,
    since: readAt,
    ...(givesUp ? { attemptsMax: recordPolicy.olderStateAttemptsMax } : {}),
  });
  if (givenUp.length === 0) return;
  await db
    .update(documents)
    .set({ absentSince: sql`clock_timestamp()`, absentBy: 'not_found' })
    .where(
      and(
        isAmong(documents.id, givenUp, 'uuid'),
        isNull(documents.raw),
        isNull(documents.deletedAt),
      ),
    );
}

/** Parks the work of an owner: postpones its due records, with a reason that `status` prints. */
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
