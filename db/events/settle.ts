import { and, eq, isNotNull, isNull, lt, notExists, or, type SQL, sql } from 'drizzle-orm';
import { type DeletesCap, overCap } from '../../contract/deletes-cap.ts';
import { deletingTypes } from '../../contract/event.ts';
import type { FailureCode } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { tombstoneNeverRead } from '../queue/postpone.ts';
import { backOff, eventKind, pendingOf, queueOf } from '../queue/queue.ts';
import { isListedOnlyBy } from '../records/listers.ts';
import { type ListedResource, row, tableOf } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import { listings, rejectedRecords } from '../schema/reads.ts';
import { connections, documents } from '../schema/utility.ts';

type Kind = 'connections' | 'documents';

/** What a read is that settles events. */
interface SettledBy {
  /** The company for which records were read; absent if they were read for any. */
  readonly companyId?: string | undefined;
  /** Records that the service showed, so that it has not deleted them. */
  readonly shown?: readonly string[] | undefined;
  /** Records that the service does not have. */
  readonly notFound?: readonly string[];
  /** How many records of the company may be tombstoned so within a day; without it, any number. */
  readonly cap?: DeletesCap | undefined;
}

/**
 * Settles the events that waited for the given records before the read began; see `settleRead`. The
 * service does not have the `notFound` records: after `notFoundAttemptsMax` attempts they are
 * tombstoned, unless there are more than the cap allows, and their events are `missing`. Returns how
 * many records had events that were settled, and how many have events that wait for another read.
 */
export async function settleRecords(
  db: Executor,
  kind: Kind,
  recordIds: readonly string[],
  readAt: string,
  by: SettledBy = {},
): Promise<{ applied: number; waiting: number }> {
  const { companyId, notFound = [] } = by;
  if (notFound.length > 0) {
    if (companyId !== undefined) await moveToNewest(db, kind, notFound, companyId);
    await tombstoneNotFound(db, kind, notFound, readAt, by);
  }
  const records = await settleRead(db, kind, recordIds, readAt, by);
  const givenUp = records.flatMap(({ record_id, missing }) => (missing > 0 ? [record_id] : []));
  if (givenUp.length > 0) await acceptOlder(db, kind, givenUp);
  await tombstoneNeverRead(db, kind, givenUp);
  return {
    applied: records.filter(({ settled }) => settled > 0).length,
    waiting: records.filter(({ waiting }) => waiting > 0).length,
  };
}

const notShown: FailureCode = 'RECORD_NOT_SHOWN';
const refused: FailureCode = 'WAREHOUSE_VALUE_REFUSED';

/** How a read settled the events of a record. */
interface RecordSettled extends Record<string, unknown> {
  readonly record_id: string;
  /** Numbers of events that the read settled, that wait for another read, and that were given up. */
  readonly settled: number;
  readonly waiting: number;
  readonly missing: number;
}

/**
 * Settles the events of the given records that were recorded before the read began, by the warehouse's
 * clock. An event is applied, or superseded by a deletion, if the row shows its state or a newer
 * one; dead if Postgres refused the record; and otherwise due again later, if it was due when the read
 * began. After `olderStateAttemptsMax` such attempts it is missing, or a deletion superseded. A deletion
 * waits while the service still shows the record, because the answer may lag behind the event. If the
 * event or the record has no `updated`, nothing says whether the read shows the event's state, so a
 * second read is needed, when the service no longer lags behind the event. With a company, only events
 * in the company's queue count as attempts: the others wait for the listing of another company.
 */
async function settleRead(
  db: Executor,
  kind: Kind,
  recordIds: readonly string[],
  readAt: string,
  { companyId, shown = [] }: SettledBy,
): Promise<RecordSettled[]> {
  const queue = companyId === undefined ? null : `${eventKind[kind]}/${companyId}`;
  const { rows } = await prepared(db, 'settleRead').execute<RecordSettled>(sql`
    with read as (
      select ${readAt}::timestamptz as began
    ), waiting as materialized (
      select
        e.*,
        e.type = any(${array(deletingTypes, 'text')}) as deletes,
        case when e.error_code = ${notShown} then e.attempts else 0 end as tried,
        (e.due_at <= read.began or e.attempts = 0)
          and coalesce(e.queue = ${queue}::text, true) as was_due
      from read
        cross join ${pendingOf.records(kind, recordIds)}
      where e.recorded_at <= read.began
    ), compared as materialized (
      select
        e.*,
        refusal.error as refused,
        not e.deletes
          and r.raw is not null
          and r.deleted_at is null
          and (r.raw_updated is null or e.occurred_at is null)
          and read.began < e.recorded_at
            + make_interval(secs => ${recordPolicy.mayLagSeconds}) as is_unsure,
        case
          when r.deleted_reason in ('not_found', 'absent', 'listed') then 'infinity'
          when r.deleted_reason = 'event' then greatest(r.updated, r.raw_updated)
          -- Without "updated", a read covers all events before it.
          when r.raw is not null and r.raw_updated is null and r.synced_at >= read.began
          then 'infinity'
          else r.raw_updated
        end as covered,
        case
          when e.deletes and r.deleted_reason = 'event'
            and e.record_id = any(${array(shown, 'text')})
          then null
          when e.deletes and r.deleted_at is not null then 'applied'
          when r.deleted_reason = 'not_found' then 'missing'
          when e.deletes or r.deleted_at is not null then 'superseded'
          else 'applied'
        end as outcome_if_covered,
        r.id is not null as has_row
      from read
        cross join waiting e
        left join ${tableOf(kind)} r on r.id = e.record_id::uuid
        left join ${rejectedRecords} refusal on refusal.resource = ${kind}
          and refusal.record_id = e.record_id
          and refusal.rejected_at >= read.began
    ), ended as materialized (
      select
        *,
        case
          when has_row and deletes then outcome_if_covered
          when is_unsure then null
          when coalesce(occurred_at, '-infinity') <= covered then outcome_if_covered
          when refused is not null and not deletes then 'dead'
        end as ends_as
      from compared
    ), judged as materialized (
      select
        *,
        ends_as is null and was_due and tried >= ${recordPolicy.olderStateAttemptsMax} as given_up
      from ended
    ), settled as (
      update ${journal} e set
        outcome = coalesce(j.ends_as, case when j.deletes then 'superseded' else 'missing' end),
        settled_at = statement_timestamp(),
        queue = null,
        due_at = null,
        error = case
          when j.given_up or j.ends_as = 'missing' then j.error
          when j.ends_as = 'dead' then j.refused
        end,
        error_code = case
          when j.given_up or j.ends_as = 'missing' then j.error_code
          when j.ends_as = 'dead' then ${refused}
        end
      from judged j
      where e.id = any(array(select id from judged where ends_as is not null or given_up))
        and e.id = j.id
    ), postponed as (
      update ${journal} e set
        attempts = j.tried + 1,
        error = 'the service does not show the state that this event named',
        error_code = ${notShown},
        due_at = clock_timestamp() + greatest(
          ${backOff(sql`j.tried`)},
          case when j.is_unsure then make_interval(secs => ${recordPolicy.mayLagSeconds}) end
        )
      from judged j
      where e.id = any(array(
          select id from judged where ends_as is null and was_due and not given_up
        ))
        and e.id = j.id
    )
    select
      record_id,
      count(ends_as)::int as settled,
      count(*) filter (where ends_as is null and not given_up)::int as waiting,
      count(*) filter (where given_up)::int as missing
    from judged
    group by record_id`);
  return rows;
}

/**
 * Returns up to `most` records that events of a company wait for which were recorded before its listings
 * were read that were last proved complete; and when the first of these reads began.
 */
export async function listedRecords(
  db: Executor,
  kind: Kind,
  companyId: string,
  resources: readonly ListedResource[],
  most: number,
): Promise<{ readAt: string; records: string[] }> {
  const { rows } = await db.execute<{ read_at: string; record_id: string }>(sql`
    select distinct read.began::text as read_at, e.record_id
    from (
        select min(proved_began) as began
        from ${listings}
        where company_id = ${companyId}::uuid
          and resource = any(${array(resources, 'text')})
        having count(*) = ${resources.length}
      ) read
      join ${journal} e on e.queue = ${queueOf(eventKind[kind], companyId)}
    where e.recorded_at <= read.began
    limit ${most}`);
  return { readAt: rows[0]?.read_at ?? '', records: rows.map(({ record_id }) => record_id) };
}

/**
 * Moves the pending events of documents to the queue of the documents' owner, because only its
 * listings contain their usage and meters. Returns the documents whose events moved.
 */
export async function moveToCompany(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<string[]> {
  const { rows } = await db.execute<{ record_id: string }>(sql`
    with moved as materialized (
      select e.id, d.company_id
      from ${pendingOf.records('documents', documentIds)}
        join ${documents} d on d.id = e.record_id::uuid
      where e.queue = ${queueOf('document', companyId)}
        and d.company_id <> ${companyId}::uuid
    )
    update ${journal} e set queue = 'document/' || m.company_id
    from moved m
    where e.id = any(array(select id from moved))
      and e.id = m.id
    returning e.record_id`);
  return [...new Set(rows.map(({ record_id }) => record_id))];
}

/**
 * Moves pending events of records out of a company's queue if the newest pending event about the
 * record names another company: the record moved, and the company rightly lacks it.
 */
async function moveToNewest(
  db: Executor,
  kind: Kind,
  recordIds: readonly string[],
  companyId: string,
): Promise<void> {
  await db.execute(sql`
    with pending as materialized (
      select e.id, e.queue, first_value(e.queue) over newest_first as newest
      from ${pendingOf.records(kind, recordIds)}
      window newest_first as (partition by e.record_id order by e.occurred_at desc nulls last, e.id)
    ), moved as materialized (
      select id, newest
      from pending
      where queue = ${queueOf(eventKind[kind], companyId)} and newest <> queue
    )
    update ${journal} e set queue = m.newest
    from moved m
    where e.id = any(array(select id from moved))
      and e.id = m.id`);
}

/**
 * Ends the hints of events that were given up, because the service never returned the state that
 * they named. The rows then show what was read, unless another event still waits: a record that an
 * event deleted and the service goes on showing is live again.
 */
async function acceptOlder(db: Executor, kind: Kind, recordIds: readonly string[]): Promise<void> {
  const table = kind === 'documents' ? documents : connections;
  const waits = db
    .select({})
    .from(journal)
    .where(and(eq(journal.id, table.hintEventId), eq(journal.outcome, 'pending')));
  await db
    .update(table)
    .set({ hintSettledAt: sql`clock_timestamp()`, unreadable: null })
    .where(
      and(
        isAmong(table.id, recordIds, 'uuid'),
        isNotNull(table.hint),
        or(
          and(eq(table.hintDeletes, false), isNull(table.deletedAt)),
          and(eq(table.hintDeletes, true), eq(table.deletedReason, 'event'), isNotNull(table.raw)),
        ),
        notExists(waits),
      ),
    );
}

/**
 * Tombstones records that the service has not had for long enough. Records that a later read found
 * are not changed. If more records that were read would be tombstoned than the cap allows, none is:
 * the next backfill finds them, and holds their deletions back for a person.
 */
async function tombstoneNotFound(
  db: Executor,
  kind: Kind,
  recordIds: readonly string[],
  readAt: string,
  { companyId, cap }: SettledBy,
): Promise<void> {
  const table = kind === 'documents' ? documents : connections;
  const queue = companyId === undefined ? null : `${eventKind[kind]}/${companyId}`;
  // The listing of a company says nothing about what another company lists.
  const isTheirs: SQL =
    companyId === undefined
      ? sql`true`
      : sql`(${row.companyId} is null or ${isListedOnlyBy(kind, companyId)})`;
  const { rows } = await db.execute<{ ids: string[]; gone: number; before: number; live: number }>(
    sql`
    with gone as materialized (
      select ${row.id} as id, ${row.raw} is not null as was_read
      from ${tableOf(kind)} ${row}
      where ${row.id} = any(${array(recordIds, 'uuid')})
        and ${row.deletedAt} is null
        and (${row.syncedAt} is null or ${row.syncedAt} < ${readAt}::timestamptz)
        and ${isTheirs}
        -- A newer event has attempts of its own.
        and (
          select bool_or(is_tried)
            and not bool_or(not is_tried and recorded_at <= ${readAt}::timestamptz)
          from (
              select
                recorded_at,
                error_code is not distinct from ${notShown}
                  and attempts >= ${recordPolicy.notFoundAttemptsMax} as is_tried
              from ${journal}
              where record_id = ${row.id}::text
                and kind = ${eventKind[kind]}
                and outcome = 'pending'
                and coalesce(queue = ${queue}::text, true)
            ) e
        )
    ), counted as (
      select count(*) filter (where was_read)::int as gone
      from gone
    )
    select
      array(select id from gone) as ids,
      gone,
      case when gone > 0 then (
        select count(*)::int
        from ${tableOf(kind)}
        where company_id = ${companyId ?? null}::uuid
          and deleted_reason = 'not_found'
          and deleted_at > clock_timestamp() - interval '1 day'
      ) else 0 end as before,
      case when gone > 0 then (
        select count(*)::int
        from ${tableOf(kind)}
        where company_id = ${companyId ?? null}::uuid
          and deleted_at is null
      ) else 0 end as live
    from counted`,
  );
  const { ids = [], gone = 0, before = 0, live = 0 } = rows[0] ?? {};
  const counts = cap !== undefined && companyId !== undefined && gone > 0;
  if (ids.length === 0 || (counts && overCap(cap, before + gone, before + live))) return;
  await db
    .update(table)
    .set({ absentSince: sql`clock_timestamp()`, absentBy: 'not_found' })
    .where(
      and(
        isAmong(table.id, ids, 'uuid'),
        isNull(table.deletedAt),
        or(isNull(table.syncedAt), lt(table.syncedAt, readAt)),
      ),
    );
}
