import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, type RowOf } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { tableOf } from '../resources.ts';
import { events, rejectedRecords, settlements, staleRecords } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import { eventKind, keyOf, postpone, refreshStale, staleOf, type WaitingReason } from './stale.ts';

/**
 * Settles the events that waited for the given records before the read began. Events whose state,
 * or a newer one, is now in the warehouse are applied. Those of deleted records are superseded,
 * those of records that Postgres refused are dead. Other due records back off. `notFound` are
 * records that the service proved not to have: after `notFoundAttemptsMax` attempts they are
 * tombstoned, and their events are `missing`. A record that moved to another company is not
 * postponed for the given one.
 */
export async function settleRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  notFound: readonly string[] = [],
  companyId?: string,
): Promise<{ applied: number; waiting: number }> {
  if (notFound.length > 0) await tombstoneNotFound(db, kind, notFound, readAt, companyId);
  const { settled, left } = await settleCovered(db, kind, recordIds, readAt);
  if (left.length === 0) return { applied: settled, waiting: 0 };
  const reason = {
    code: 'RECORD_NOT_SHOWN',
    message: 'the service does not show the state that this event named',
  } as const;
  const { waiting, givenUp } = await postpone(db, staleOf.records(kind, left), reason, {
    dueAt: readAt,
    since: readAt,
    attemptsMax: recordPolicy.olderStateAttemptsMax,
    ...(companyId === undefined ? {} : { owner: companyId }),
  });
  if (givenUp.length > 0) await acceptOlder(db, kind, givenUp);
  return { applied: settled, waiting };
}

/** Settles what the read covers. Returns how many records it settled, and which others wait. */
async function settleCovered(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
): Promise<{ settled: number; left: string[] }> {
  const judged = await settleJudged(db, kind, recordIds, readAt);
  // New events came during the read, or older ones were settled alone: looks up what still waits.
  const again = judged.filter(({ wholly, partly, before }) => partly || (wholly && !before));
  const idOf = ({ record_id }: Judged): string => record_id;
  if (again.length > 0) await refreshStale(db, eventKind[kind], again.map(idOf));
  return {
    settled: judged.filter(({ wholly, partly }) => wholly || partly).length,
    left: judged.filter(({ wholly }) => !wholly).map(idOf),
  };
}

/** How a read settles a stale record. */
type Judged = RowOf<typeof staleRecords.recordId> & {
  /** Whether some of its events are settled. */
  readonly partly: boolean;
  /** Whether all of its events are settled. */
  readonly wholly: boolean;
  /** Whether no event came after the read began. */
  readonly before: boolean;
};

async function settleJudged(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
): Promise<Judged[]> {
  const read = sql`${readAt}::timestamptz`;
  const { rows } = await hot(db, 'settleJudged').execute<Judged>(sql`
    with waiting as materialized (
      select s.*
      from unnest(${array([...recordIds].sort(), 'text')}) as asked (record_id)
        cross join lateral (
          select *
          from ${staleRecords}
          where key = ${keyOf(eventKind[kind], sql`asked.record_id`)}
            and since <= ${read}
          for update
        ) s
    ), judged as materialized (
      select
        w.*,
        r.outcome,
        r.shown,
        coalesce(w.wanted <= r.shown, false) as all_covered,
        refused.error as refused
      from waiting w
        left join lateral (
          select ${outcomeOf} as outcome, ${coveredBy(read)} as shown
          from ${tableOf(kind)}
          where id = w.record_id::uuid
          offset 0
        ) r on true
        left join lateral (
          select error
          from ${rejectedRecords}
          where resource = ${kind}
            and record_id = w.record_id
            and rejected_at >= ${read}
          offset 0
        ) refused on true
    ), partly as materialized (
      -- Where the record is older than its newest event, its older events may still be settled.
      select j.record_id
      from judged j
      where not j.all_covered
        and j.shown is not null
        and exists (
          select from ${events} e
          where e.record_id = j.record_id
            and e.recorded_at >= j.since
            and e.recorded_at <= ${read}
            and e.kind = ${eventKind[kind]}
            and e.outcome = 'pending'
            and e.occurred_at <= j.shown
          offset 0
        )
    ), settled as (
      insert into ${settlements}
        (kind, record_id, owner, since, read_at, shown, outcome, error, error_code, attempts)
      select
        kind,
        record_id,
        owner,
        since,
        ${read},
        shown,
        outcome,
        case outcome when 'missing' then error end,
        case outcome when 'missing' then error_code end,
        attempts
      from judged
      where all_covered
        or record_id in (select record_id from partly)
      union all
      select
        kind,
        record_id,
        owner,
        since,
        ${read},
        'infinity',
        'dead',
        refused,
        ${refusedCode},
        attempts
      from judged
      where not all_covered
        and refused is not null
    ), done as (
      delete from ${staleRecords}
      where key = any(array(
        select key
        from judged
        where (all_covered or refused is not null)
          and last_event_at <= ${read}
      ))
    )
    select
      record_id,
      record_id in (select record_id from partly) as partly,
      all_covered or refused is not null as wholly,
      last_event_at <= ${read} as before
    from judged`);
  return rows;
}

const refusedCode: FailureCode = 'WAREHOUSE_VALUE_REFUSED';

/** The outcome of events that a row's state covers. */
const outcomeOf = sql.raw(`case
            when deleted_reason = 'not_found' then 'missing'
            when deleted_at is not null then 'superseded'
            else 'applied'
          end`);

/**
 * The newest state that a row covers. A record without `updated` covers every event that came
 * before its read.
 */
const coveredBy = (readAt: SQL): SQL => sql`case
            when deleted_reason in ('not_found', 'absent', 'listed') then 'infinity'
            when deleted_reason = 'event' then greatest(updated, raw_updated)
            when raw is not null and raw_updated is null and synced_at >= ${readAt} then 'infinity'
            else raw_updated
          end`;

/**
 * Moves the stale records of documents to the company that turned out to own them. Only its
 * listings contain their usage and meters. Returns those documents.
 */
export async function moveToCompany(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<string[]> {
  const { rows } = await hot(db, 'moveToCompany').execute<RowOf<typeof staleRecords.recordId>>(sql`
    with moved as materialized (
      select s.record_id, d.company_id
      from unnest(${array([...documentIds].sort(), 'uuid')}) as asked (id)
        cross join lateral (
          select company_id
          from ${documents}
          where id = asked.id
            and company_id <> ${companyId}::uuid
          offset 0
        ) d
        cross join lateral (
          select record_id
          from ${staleRecords}
          where key = ${keyOf('document', sql`asked.id`)}
            and owner = ${companyId}
          for update
        ) s
    )
    update ${staleRecords} s set owner = m.company_id::text
    from moved m
    where s.key = ${keyOf('document', sql`m.record_id`)}
    returning s.record_id`);
  return rows.map(({ record_id }) => record_id);
}

/**
 * Backs off events of a document that could not be read. After `olderStateAttemptsMax` attempts
 * that fail at the service they are `missing`. A document that was never read is tombstoned then.
 */
export async function postponeFailed(
  db: Executor,
  recordId: string,
  readAt: string,
  reason: WaitingReason,
): Promise<void> {
  const givesUp = reason.code.startsWith('SERVICE_') || reason.code === 'RECORD_NOT_SHOWN';
  const { givenUp } = await postpone(db, staleOf.records('documents', [recordId]), reason, {
    dueAt: readAt,
    since: readAt,
    ...(givesUp ? { attemptsMax: recordPolicy.olderStateAttemptsMax } : {}),
  });
  if (givenUp.length === 0) return;
  await db
    .update(documents)
    .set({ deletedAt: sql`clock_timestamp()`, deletedReason: 'not_found' })
    .where(and(eq(documents.id, recordId), isNull(documents.raw), isNull(documents.deletedAt)));
}

/**
 * Backs off events of documents whose usage was incomplete. After `olderStateAttemptsMax` attempts
 * they are `missing`, and the usage stays as it is.
 */
export async function postponeDocuments(
  db: Executor,
  recordIds: readonly string[],
  readAt: string,
): Promise<void> {
  const reason = {
    code: 'LISTING_UNSTABLE',
    message: 'the service does not show all usage of the document, or contradicts itself about it',
  } as const;
  const limits = { dueAt: readAt, since: readAt, attemptsMax: recordPolicy.olderStateAttemptsMax };
  await postpone(db, staleOf.records('documents', recordIds), reason, limits);
}

/**
 * Accepts an older state: events named a newer one that the service never returned. The next read
 * is then taken, unless it is older than a state that other events still wait for.
 */
async function acceptOlder(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
): Promise<void> {
  await db.execute(sql`
    update ${tableOf(kind)} r set
      synced_at = null,
      updated = greatest(r.raw_updated, (
        select s.wanted
        from ${staleRecords} s
        where s.key = ${keyOf(eventKind[kind], sql`r.id`)}
      ))
    where r.id = any(${array(recordIds, 'uuid')})
      and r.deleted_at is null`);
}

/**
 * Tombstones records that the service did not have for long enough, and their usage. Leaves alone
 * those that a later read found.
 */
async function tombstoneNotFound(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  companyId?: string,
): Promise<void> {
  const ofCompany = companyId === undefined ? sql`` : sql`and s.owner = ${companyId}`;
  const gone = sql`
    update ${tableOf(kind)} r set
      deleted_at = clock_timestamp(),
      deleted_reason = 'not_found'
    where r.id = any(${array(recordIds, 'uuid')})
      and r.deleted_at is null
      and (r.synced_at is null or r.synced_at < ${readAt}::timestamptz)
      and exists (
        select from (
          select owner, error_code, attempts
          from ${staleRecords}
          where key = ${keyOf(eventKind[kind], sql`r.id`)}
          offset 0
        ) s
        where s.error_code = 'RECORD_NOT_SHOWN'
          and s.attempts >= ${recordPolicy.notFoundAttemptsMax}
          ${ofCompany}
        offset 0
      )`;
  if (kind === 'connections') {
    await db.execute(gone);
    return;
  }
  await db.execute(sql`
    with gone as (${gone}
      returning r.id, r.deleted_at
    )
    update ${usageData} u set
      deleted_at = g.deleted_at,
      deleted_reason = 'document'
    from gone g
    where u.document_id = g.id
      and u.deleted_at is null`);
}

/** Postpones the due records of an owner: its work is parked with a reason that `status` prints. */
export async function parkOwner(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: WaitingReason,
): Promise<void> {
  await postpone(db, staleOf.owner(kind, owner), reason, {
    leastSeconds: recordPolicy.parkedSeconds,
  });
}
