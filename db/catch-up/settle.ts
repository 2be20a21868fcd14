import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array, type RowOf } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { tableOf } from '../resources.ts';
import { events, rejectedRecords, settlements, staleRecords } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import { eventKind, keyOf, postpone, refreshStale, staleOf, type WaitingReason } from './stale.ts';

/**
 * Tries after which a record that the service never showed is no longer looked for: four minutes,
 * as they lie further apart each time. A later sight of it has its events looked at again.
 */
export const notShownAttemptsMax = 8;

/**
 * Tries after which the service is believed that shows an older state than an event told of each
 * time, or does not prove what it does not show: an hour and a half. The event is `missing` then,
 * until its state is seen.
 */
export const olderShownAttemptsMax = 15;

/**
 * Settles what waited for the given records before the read began: events whose state, or a newer
 * one, is now in the warehouse are applied, those of records that are gone are superseded, those of
 * records that Postgres refused are dead. What was due and is none of these waits, each time
 * longer. `notShown` are records that the service proved not to have: when that has been so for a
 * while they are taken for gone, and what told of them is `missing`. A record that has moved to
 * another company is not postponed for the given one.
 */
export async function settleRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  notShown: readonly string[] = [],
  companyId?: string,
): Promise<{ applied: number; waiting: number }> {
  if (notShown.length > 0) await giveUpNotShown(db, kind, notShown, companyId);
  const { settled, left } = await settleShown(db, kind, recordIds, readAt);
  if (left.length === 0) return { applied: settled, waiting: 0 };
  const reason = {
    code: 'RECORD_NOT_SHOWN',
    message: 'the service does not show the state that this event told of',
  } as const;
  const { waiting, givenUp } = await postpone(db, staleOf.records(kind, left), reason, {
    dueAt: readAt,
    since: readAt,
    attemptsMax: olderShownAttemptsMax,
    ...(companyId === undefined ? {} : { owner: companyId }),
  });
  if (givenUp.length > 0) await takeOlder(db, kind, givenUp);
  return { applied: settled, waiting };
}

/** Settles what the read showed. Returns how many records it settled, and which others wait. */
async function settleShown(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
): Promise<{ settled: number; left: string[] }> {
  const judged = await settleJudged(db, kind, recordIds, readAt);
  // Told of again while it was read, or settled in part: what is still pending of it is looked up.
  const again = judged.filter(({ wholly, partly, before }) => partly || (wholly && !before));
  const idOf = (one: Judged): string => one.record_id;
  if (again.length > 0) await refreshStale(db, eventKind[kind], again.map(idOf));
  return {
    settled: judged.filter(({ wholly, partly }) => wholly || partly).length,
    left: judged.filter(({ wholly }) => !wholly).map(idOf),
  };
}

/** What a read showed of a record that events wait for. */
type Judged = RowOf<typeof staleRecords.recordId> & {
  /** Whether some of its events are settled. */
  readonly partly: boolean;
  /** Whether all of them are. */
  readonly wholly: boolean;
  /** Whether none came after the read began. */
  readonly before: boolean;
};

async function settleJudged(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
): Promise<Judged[]> {
  const read = sql`${readAt}::timestamptz`;
  const { rows } = await db.execute<Judged>(sql`
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
        coalesce(w.wanted <= r.shown, false) as all_shown,
        refused.error as refused
      from waiting w
        left join lateral (
          select ${outcomeOf} as outcome, ${shownBy(read)} as shown
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
      -- Of a record that was shown in an older state than all of its events told of, some may be
      -- settled.
      select j.record_id
      from judged j
      where not j.all_shown
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
      where all_shown
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
      where not all_shown
        and refused is not null
    ), done as (
      delete from ${staleRecords}
      where key = any(array(
        select key
        from judged
        where (all_shown or refused is not null)
          and told_at <= ${read}
      ))
    )
    select
      record_id,
      record_id in (select record_id from partly) as partly,
      all_shown or refused is not null as wholly,
      told_at <= ${read} as before
    from judged`);
  return rows;
}

const refusedCode: FailureCode = 'WAREHOUSE_VALUE_REFUSED';

/** Of a row: what events become that its state covers. */
const outcomeOf = sql.raw(`case
            when deleted_reason = 'not_found' then 'missing'
            when deleted_at is not null then 'superseded'
            else 'applied'
          end`);

/**
 * Of a row: the state up to which it covers what events told of. A record without `updated` covers
 * all that came before it was read.
 */
const shownBy = (readAt: SQL): SQL => sql`case
            when deleted_reason in ('not_found', 'absent', 'listed') then 'infinity'
            when deleted_reason = 'event' then greatest(updated, raw_updated)
            when raw is not null and raw_updated is null and synced_at >= ${readAt} then 'infinity'
            else raw_updated
          end`;

/**
 * Gives what waits for documents that turned out to be another company's to that company, whose
 * listings tell of them: their usage, their meters. Returns those documents.
 */
export async function moveToCompany(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<string[]> {
  const { rows } = await db.execute<RowOf<typeof staleRecords.recordId>>(sql`
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
 * Has the events of a document wait that could not be read, each time longer. What the service does
 * not answer for when an older state would be believed is `missing`; a document that was never read
 * is gone then.
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
    ...(givesUp ? { attemptsMax: olderShownAttemptsMax } : {}),
  });
  if (givenUp.length === 0) return;
  await db
    .update(documents)
    .set({ deletedAt: sql`clock_timestamp()`, deletedReason: 'not_found' })
    .where(and(eq(documents.id, recordId), isNull(documents.raw), isNull(documents.deletedAt)));
}

/**
 * Has the events of documents of whose usage not all was shown wait, each time longer. When one of
 * a document has waited as long as an older state needs to be believed, they are `missing`: the
 * usage stays as it is.
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
  const limits = { dueAt: readAt, since: readAt, attemptsMax: olderShownAttemptsMax };
  await postpone(db, staleOf.records('documents', recordIds), reason, limits);
}

/**
 * Events told of a newer state than the service shows whenever it is asked: its record is the
 * truth, and whatever is read next is taken, as long as it is not older than what other events
 * still wait for.
 */
async function takeOlder(
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

/** Tombstones records that the service was asked for long enough, and what usage they have. */
async function giveUpNotShown(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  companyId?: string,
): Promise<void> {
  const ofCompany = companyId === undefined ? sql`` : sql`and s.owner = ${companyId}`;
  const gone = sql`
    update ${tableOf(kind)} r set
      deleted_at = clock_timestamp(),
      deleted_reason = 'not_found'
    where r.id = any(${array(recordIds, 'uuid')})
      and r.deleted_at is null
      and exists (
        select from (
          select owner, error_code, attempts
          from ${staleRecords}
          where key = ${keyOf(eventKind[kind], sql`r.id`)}
          offset 0
        ) s
        where s.error_code = 'RECORD_NOT_SHOWN'
          and s.attempts >= ${notShownAttemptsMax}
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

/** Postpones what is due of an owner: its work is parked with a reason that `status` shows. */
export async function parkOwner(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: WaitingReason,
): Promise<void> {
  await postpone(db, staleOf.owner(kind, owner), reason, { leastSeconds: 10 });
}
