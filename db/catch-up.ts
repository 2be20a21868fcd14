import { type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../contract/failures.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { array, uuid } from './arrays.ts';
import type { Executor } from './connect.ts';
import { serviceParked } from './parking.ts';
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
 * Rows of stale records of which the owners are told, longest due first, before owners are looked
 * for one by one.
 */
const dueRowsMax = 500;

/**
 * Companies, or meters for intervals, that have something due; those that are due longest come
 * first, so that none keeps others waiting by being tried again. None while nothing may be asked of
 * the service. Of the given ones alone where they are given.
 */
export async function dueOwners(
  db: Executor,
  kind: CatchUpKind,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  const owners = async (from: SQL): Promise<{ owners: string[]; rows: number }> => {
    const { rows } = await db.execute<{ owner: string; rows: number }>(sql`
      select owner, count(*)::int as rows
      from ${from}
      where not ${serviceParked}
      group by owner
      order by min(due_at), owner limit ${limit}`);
    return {
      owners: rows.map(({ owner }) => owner),
      rows: rows.reduce((sum, row) => sum + row.rows, 0),
    };
  };
  if (among !== undefined) {
    const { owners: due } =
      await owners(sql`unnest(${array(among, 'text')}) as asked (owner) cross join lateral (
      select s.due_at from metersync.stale_records s
      where s.queue = ${keyOf(eventKind[kind], sql`asked.owner`)} and s.due_at <= clock_timestamp()
      order by s.due_at limit 1
    ) first_due`);
    return due;
  }
  const longest = await owners(sql`(
    select s.owner, s.due_at from metersync.stale_records s
    where s.kind = ${eventKind[kind]} and s.due_at <= clock_timestamp()
    order by s.kind, s.due_at limit ${dueRowsMax}
  ) longest`);
  if (longest.owners.length >= limit || longest.rows < dueRowsMax) return longest.owners;
  // A few owners have much that is due: each owner that waits is looked up once.
  const { owners: due } = await owners(sql`(
    with recursive waiting as (
      (select s.queue from metersync.stale_records s order by s.queue limit 1)
      union all
      select (
        select s.queue from metersync.stale_records s
        where s.queue > w.queue
        order by s.queue limit 1)
      from waiting w
      where w.queue is not null
    )
    select first_due.owner, first_due.due_at
    from waiting w cross join lateral (
      select s.kind, s.owner, s.due_at from metersync.stale_records s
      where s.queue = w.queue and s.due_at <= clock_timestamp()
      order by s.due_at limit 1
    ) first_due
    where first_due.kind = ${eventKind[kind]}
  ) each_owner`);
  return due;
}

/** The warehouse's clock: reads are ordered by it, whichever worker makes them. */
export async function warehouseNow(db: Executor): Promise<string> {
  const result = await db.execute<{ now: string }>(sql`select clock_timestamp()::text as now`);
  return result.rows[0]?.now ?? '';
}

/** Records of a company that wait to be read, longest waiting first, and the warehouse's clock. */
export async function dueRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  limit: number,
): Promise<{ readAt: string; due: string[] }> {
  const result = await db.execute<{ now: string; record_id: string | null }>(sql`
    select clock.now, due.record_id
    from (select clock_timestamp()::text as now) clock
      left join lateral (
        select record_id, due_at from metersync.stale_records
        where queue = ${keyOf(eventKind[kind], companyId)} and due_at <= clock_timestamp()
        order by due_at, record_id limit ${limit}
      ) due on true
    order by due.due_at, due.record_id`);
  const [first] = result.rows;
  if (first === undefined) throw new Error('a clock without a time');
  return { readAt: first.now, due: result.rows.flatMap(({ record_id }) => record_id ?? []) };
}

/**
 * A record that is looked for, by its id and when it was created: texts that compare as times do.
 */
export interface WantedDocument {
  readonly id: string;
  readonly key: string | null;
}

const comparable = (time: SQL): SQL =>
  sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')`;

/**
 * Documents of a company that wait to be read, longest waiting first, and the warehouse's clock.
 */
export async function dueDocuments(
  db: Executor,
  companyId: string,
  limit: number,
): Promise<{ readAt: string; due: WantedDocument[] }> {
  const result = await db.execute<{ now: string; id: string | null; key: string | null }>(sql`
    select clock.now, due.record_id as id, ${comparable(sql`known.created`)} as key
    from (select clock_timestamp()::text as now) clock
      left join lateral (
        select record_id, due_at from metersync.stale_records
        where queue = ${keyOf('document', companyId)} and due_at <= clock_timestamp()
        order by due_at, record_id limit ${limit}
      ) due on true
      left join lateral (
        select created from utility.documents where id = due.record_id::uuid offset 0
      ) known on true
    order by due.due_at, due.record_id`);
  const [first] = result.rows;
  if (first === undefined) throw new Error('a clock without a time');
  return {
    readAt: first.now,
    due: result.rows.flatMap(({ id, key }) => (id === null ? [] : [{ id, key }])),
  };
}

/** Ids of the usage rows of documents that live, by the id of the document. */
export async function liveUsage(
  db: Executor,
  documentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const result = await db.execute<{ document_id: string; ids: string[] }>(sql`
    select document_id, array_agg(id::text) as ids
    from (select distinct unnest(${array(documentIds, 'uuid')}) as document_id) asked
      cross join lateral (
        select id from utility.usage_data u
        where u.document_id = asked.document_id and deleted_at is null offset 0
      ) u
    group by document_id`);
  return new Map(result.rows.map(({ document_id, ids }) => [document_id, ids]));
}

/** When records were created, by their ids; those of which it is not known are left out. */
export async function createdTimes(
  db: Executor,
  listing: 'documents' | 'usageData',
  ids: readonly string[],
): Promise<Map<string, string>> {
  const table = listing === 'documents' ? sql`utility.documents` : sql`utility.usage_data`;
  const uuids = ids.filter((id) => uuid.test(id));
  const result = await db.execute<{ id: string; key: string }>(sql`
    select id, ${comparable(sql`created`)} as key from ${table}
    where id = any(${array(uuids, 'uuid')}) and created is not null`);
  return new Map(result.rows.map(({ id, key }) => [id, key]));
}

/**
 * The usage rows of documents, where each document's record tells its usage and the warehouse holds
 * just these rows; else undefined.
 */
export async function usageToldByRecords(
  db: Executor,
  documentIds: readonly string[],
): Promise<WantedDocument[] | undefined> {
  const ids = (of: SQL): SQL =>
    sql`array_agg(distinct ${of} collate "C" order by ${of} collate "C")`;
  const result = await db.execute<{
    id: string | null;
    key: string | null;
    told: boolean | null;
  }>(sql`
    select u.id, ${comparable(sql`u.created`)} as key, d.told
    from (
      select id, jsonb_typeof(raw -> 'usageData') = 'array'
        and (select ${ids(sql`u.id::text`)} from utility.usage_data u where document_id = d.id and deleted_at is null)
          is not distinct from (
            select ${ids(sql`lower(row ->> 'id')`)} from jsonb_array_elements(metersync.elements(raw -> 'usageData')) row
          ) as told
      from utility.documents d where id = any(${array(documentIds, 'uuid')}) and deleted_at is null
    ) d left join lateral (
      select id, created from utility.usage_data where document_id = d.id and deleted_at is null offset 0
    ) u on true`);
  if (result.rows.some(({ told }) => !told)) return undefined;
  return result.rows.flatMap(({ id, key }) => (id === null ? [] : [{ id, key }]));
}

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

/**
 * Settles what the read showed. Returns how many records it settled, and those of which events
 * still wait.
 */
async function settleShown(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
): Promise<{ settled: number; left: string[] }> {
  const result = await db.execute<{
    record_id: string;
    partly: boolean;
    wholly: boolean;
    before: boolean;
  }>(sql`
    with waiting as materialized (
      select s.*
      from unnest(${array([...recordIds].sort(), 'text')}) as asked (record_id) cross join lateral (
        select * from metersync.stale_records
        where key = ${keyOf(eventKind[kind], sql`asked.record_id`)} and since <= ${readAt}::timestamptz
        for update
      ) s
    ), judged as materialized (
      select w.*, r.outcome, r.shown, coalesce(w.wanted <= r.shown, false) as all_shown, refused.error as refused
      from waiting w
        left join lateral (
          select
            case
              when deleted_reason = 'not_found' then 'missing'
              when deleted_at is not null then 'superseded'
              else 'applied' end as outcome,
            case
              when deleted_reason in ('not_found', 'absent', 'listed') then 'infinity'
              when deleted_reason = 'event' then greatest(updated, raw_updated)
              else raw_updated end as shown
          from ${recordTable(kind)}
          where id = w.record_id::uuid offset 0
        ) r on true
        left join lateral (
          select error from metersync.rejected_records
          where resource = ${kind} and record_id = w.record_id and rejected_at >= ${readAt}::timestamptz offset 0
        ) refused on true
    ), partly as materialized (
      -- Of a record that was shown in an older state than all of its events told of, some may be
      -- settled.
      select j.record_id
      from judged j
      where not j.all_shown and j.shown is not null and exists (
        select from metersync.events e
        where e.record_id = j.record_id and e.recorded_at >= j.since and e.recorded_at <= ${readAt}::timestamptz
          and e.kind = ${eventKind[kind]} and e.outcome = 'pending' and e.occurred_at <= j.shown offset 0)
    ), settled as (
      insert into metersync.settlements
        (kind, record_id, owner, since, read_at, shown, outcome, error, error_code, attempts)
      select kind, record_id, owner, since, ${readAt}::timestamptz, shown, outcome,
        case outcome when 'missing' then error end, case outcome when 'missing' then error_code end, attempts
      from judged
      where all_shown or record_id in (select record_id from partly)
      union all
      select kind, record_id, owner, since, ${readAt}::timestamptz, 'infinity', 'dead', refused, ${refusedCode}, attempts
      from judged
      where not all_shown and refused is not null
    ), done as (
      delete from metersync.stale_records
      where key = any(array(
        select key from judged
        where (all_shown or refused is not null) and told_at <= ${readAt}::timestamptz))
    )
    select record_id, record_id in (select record_id from partly) as partly,
      all_shown or refused is not null as wholly, told_at <= ${readAt}::timestamptz as before
    from judged`);
  // Told of again while it was read, or settled in part: what is still pending of it is looked up.
  const again = result.rows.filter(({ wholly, partly, before }) => partly || (wholly && !before));
  if (again.length > 0) {
    await refreshStale(
      db,
      eventKind[kind],
      again.map(({ record_id }) => record_id),
    );
  }
  return {
    settled: result.rows.filter(({ wholly, partly }) => wholly || partly).length,
    left: result.rows.filter(({ wholly }) => !wholly).map(({ record_id }) => record_id),
  };
}

const refusedCode: FailureCode = 'WAREHOUSE_VALUE_REFUSED';

const recordTable = (kind: 'connections' | 'documents'): SQL =>
  kind === 'documents' ? sql`utility.documents` : sql`utility.connections`;

/**
 * Gives what waits for documents that turned out to be another company's to that company, whose
 * listings tell of them: their usage, their meters. Returns those documents.
 */
export async function handOver(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<string[]> {
  const result = await db.execute<{ record_id: string }>(sql`
    with moved as materialized (
      select s.record_id, d.company_id
      from unnest(${array([...documentIds].sort(), 'uuid')}) as asked (id)
        cross join lateral (
          select company_id from utility.documents
          where id = asked.id and company_id <> ${companyId}::uuid offset 0
        ) d
        cross join lateral (
          select record_id from metersync.stale_records
          where key = ${keyOf('document', sql`asked.id`)} and owner = ${companyId}
          for update
        ) s
    )
    update metersync.stale_records s set owner = m.company_id::text
    from moved m
    where s.key = ${keyOf('document', sql`m.record_id`)}
    returning s.record_id`);
  return result.rows.map(({ record_id }) => record_id);
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
  await db.execute(sql`
    update utility.documents set deleted_at = clock_timestamp(), deleted_reason = 'not_found'
    where id = ${recordId}::uuid and raw is null and deleted_at is null`);
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
    update ${recordTable(kind)} r set synced_at = null, updated = greatest(r.raw_updated, (
      select s.wanted from metersync.stale_records s
      where s.key = ${keyOf(eventKind[kind], sql`r.id`)}))
    where r.id = any(${array(recordIds, 'uuid')}) and r.deleted_at is null`);
}

/** Tombstones records that the service was asked for long enough, and what usage they have. */
async function giveUpNotShown(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  companyId?: string,
): Promise<void> {
  const gone = sql`
    update ${recordTable(kind)} r set deleted_at = clock_timestamp(), deleted_reason = 'not_found'
    where r.id = any(${array(recordIds, 'uuid')}) and r.deleted_at is null and exists (
      select from (
        select owner, error_code, attempts from metersync.stale_records
        where key = ${keyOf(eventKind[kind], sql`r.id`)} offset 0
      ) s
      where s.error_code = 'RECORD_NOT_SHOWN' and s.attempts >= ${notShownAttemptsMax}
        ${companyId === undefined ? sql`` : sql`and s.owner = ${companyId}`} offset 0)`;
  if (kind === 'connections') await db.execute(gone);
  else {
    await db.execute(sql`
      with gone as (${gone} returning r.id, r.deleted_at)
      update utility.usage_data u set deleted_at = g.deleted_at, deleted_reason = 'document'
      from gone g
      where u.document_id = g.id and u.deleted_at is null`);
  }
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
