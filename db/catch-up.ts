import { type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../contract/failures.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { array, uuid } from './arrays.ts';
import type { Executor } from './connect.ts';
import { serviceParked } from './parking.ts';
import { dueOf, eventKind, hasOutcome } from './waiting.ts';

/**
 * Tries after which a record that the service never showed is no longer looked for: four minutes, as they lie further
 * apart each time. A later sight of it has its events looked at again.
 */
export const notShownAttemptsMax = 8;

/**
 * Tries after which the service is believed that shows an older state than an event told of each time, or does not prove
 * what it does not show: an hour and a half. The event is `missing` then, until its state is seen.
 */
export const olderShownAttemptsMax = 15;

/** Why events wait: a failure of the catalogue, in words. */
export interface WaitingReason {
  readonly code: FailureCode;
  readonly message: string;
}

/**
 * `set` of an update that postpones events, longer each time they wait for the same reason: from one
 * second to a quarter of an hour.
 */
export function postponed({ code, message }: WaitingReason, leastSeconds = 1): SQL {
  const attempts = sql`case when error_code = ${code} then attempts else 0 end`;
  return sql`attempts = ${attempts} + 1, error_code = ${code}, error = ${message},
    next_attempt_at = clock_timestamp() + greatest(interval '1 second' * ${leastSeconds}::int,
      least(interval '15 minutes', interval '1 second' * power(2, least(${attempts}, 12))))`;
}

/**
 * Companies, or meters for intervals, that have something due; those that are due longest come first, so that none keeps
 * others waiting by being tried again. None while nothing may be asked of the service. Of the given ones alone where they are given.
 */
export async function dueOwners(
  db: Executor,
  kind: CatchUpKind,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  const owner = kind === 'intervals' ? sql`record_id` : sql`company_id`;
  const result = await db.execute<{ owner: string }>(sql`
    select ${owner}::text as owner from metersync.events
    where ${dueOf(kind, among)} and not ${serviceParked}
    group by ${owner} order by min(coalesce(next_attempt_at, recorded_at)), 1 limit ${limit}`);
  return result.rows.map((row) => row.owner);
}

/** The warehouse's clock: reads are ordered by it, whichever worker makes them. */
export async function warehouseNow(db: Executor): Promise<string> {
  const result = await db.execute<{ now: string }>(sql`select clock_timestamp()::text as now`);
  return result.rows[0]?.now ?? '';
}

/** Records of a company that wait to be read, longest waiting first. */
export async function dueRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  limit: number,
): Promise<string[]> {
  const result = await db.execute<{ record_id: string }>(sql`
    select record_id from metersync.events
    where ${dueOf(kind, [companyId])}
    group by record_id order by min(recorded_at), record_id limit ${limit}`);
  return result.rows.map((row) => row.record_id);
}

/** A record that is looked for, by its id and when it was created: texts that compare as times do. */
export interface WantedDocument {
  readonly id: string;
  readonly key: string | null;
}

const comparable = (time: SQL): SQL => sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')`;

/** Documents of a company that wait to be read, longest waiting first. */
export async function dueDocuments(
  db: Executor,
  companyId: string,
  limit: number,
): Promise<WantedDocument[]> {
  const ids = await dueRecords(db, 'documents', companyId, limit);
  const created = await createdTimes(db, 'documents', ids);
  return ids.map((id) => ({ id, key: created.get(id) ?? null }));
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
 * The usage rows of documents, where each document's record tells its usage and the warehouse holds just these rows;
 * else undefined.
 */
export async function usageToldByRecords(
  db: Executor,
  documentIds: readonly string[],
): Promise<WantedDocument[] | undefined> {
  const ids = (of: SQL): SQL => sql`array_agg(distinct ${of} collate "C" order by ${of} collate "C")`;
  const result = await db.execute<{ id: string | null; key: string | null; told: boolean | null }>(sql`
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
 * Ids of the events of the given records that wait. They are picked record by record: of hundreds of records the planner
 * thinks, as long as it knows little, that they are what most of the journal is about.
 */
const waitingFor = (kind: 'connections' | 'documents', recordIds: readonly string[]): SQL => sql`array(
  select w.id
  from unnest(${array(recordIds, 'text')}) as wanted (record_id) cross join lateral (
    select id from metersync.events
    where record_id = wanted.record_id and kind = ${eventKind[kind]} and ${hasOutcome('pending')} offset 0
  ) w)`;

/** Events of the given records that wait, and were in the journal before the read began. */
const coveredBy = (kind: 'connections' | 'documents', recordIds: readonly string[], readAt: string): SQL =>
  sql`id = any(${waitingFor(kind, recordIds)}) and ${hasOutcome('pending')} and recorded_at <= ${readAt}::timestamptz`;

/**
 * Settles the events of the given records that were in the journal before the read began: those whose state, or a
 * newer one, is now in the warehouse are applied; those of records that are gone are superseded; those that were due
 * and are neither wait, each time longer. `notShown` are records that the service proved not to have: when that has
 * been so for a while they are taken for gone, and what told of them is `missing`.
 */
export async function settleRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  notShown: readonly string[] = [],
  companyId?: string,
): Promise<{ applied: number; waiting: number }> {
  const table = kind === 'documents' ? sql`utility.documents` : sql`utility.connections`;
  const covered = coveredBy(kind, recordIds, readAt);
  const elsewhere = companyId === undefined ? sql`false` : sql`company_id <> ${companyId}::uuid`;
  if (notShown.length > 0) await buryNotShown(db, kind, notShown, elsewhere);
  const settled = await db.execute(sql`
    update metersync.events e
    set outcome = settled.outcome, applied_at = clock_timestamp(), next_attempt_at = null,
      error = case when settled.outcome = 'missing' then error end,
      error_code = case when settled.outcome = 'missing' then error_code end
    from (
      select id, (
        select case
          when type = 'document.deleted.v2' and r.deleted_reason = 'event' then 'applied'
          when r.deleted_reason = 'not_found' then 'missing'
          when r.deleted_at is not null then 'superseded'
          else 'applied' end
        from ${table} r
        where r.id = record_id::uuid
          and (r.raw_updated >= occurred_at or r.deleted_reason in ('not_found', 'absent', 'listed')
            or (type = 'document.deleted.v2' and r.deleted_reason = 'event'))
      ) as outcome
      from metersync.events where ${covered} order by id for update
    ) settled
    where e.id = settled.id and settled.outcome is not null`);
  const code = 'RECORD_NOT_SHOWN';
  await buryRefused(db, kind, covered, readAt);
  await believeOlder(db, table, covered);
  const message = 'the service does not show the state that this event told of';
  const waiting = await postpone(db, sql`${covered} and (${elsewhere}) is not true`, readAt, {
    code,
    message,
  });
  return { applied: settled.rowCount ?? 0, waiting };
}

/** Postpones those of the covered events that were due when the read began. */
async function postpone(db: Executor, covered: SQL, readAt: string, reason: WaitingReason): Promise<number> {
  const result = await db.execute(sql`
    update metersync.events set ${postponed(reason)}
    where ${hasOutcome('pending')} and id in (
      select id from metersync.events
      where ${covered} and coalesce(next_attempt_at, '-infinity') <= ${readAt}::timestamptz order by id for update)`);
  return result.rowCount ?? 0;
}

/**
 * Gives what waits for documents that turned out to be another company's to that company, whose listings tell of them: their
 * usage, their meters. Returns those documents.
 */
export async function handOver(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<string[]> {
  const result = await db.execute<{ record_id: string }>(sql`
    update metersync.events e set company_id = d.company_id
    from utility.documents d
    where e.id in (
        select id from metersync.events
        where id = any(${waitingFor('documents', documentIds)}) and ${hasOutcome('pending')}
          and company_id = ${companyId}::uuid order by id for update)
      and ${hasOutcome('pending', 'e')} and d.id = e.record_id::uuid and d.company_id <> ${companyId}::uuid
    returning e.record_id`);
  return result.rows.map(({ record_id }) => record_id);
}

/**
 * Has the events of a document wait that could not be read, each time longer. What the service does not answer for when an
 * older state would be believed is `missing`; a document that was never read is gone then.
 */
export async function postponeFailed(
  db: Executor,
  recordId: string,
  readAt: string,
  reason: WaitingReason,
): Promise<void> {
  const covered = coveredBy('documents', [recordId], readAt);
  if (reason.code.startsWith('SERVICE_') || reason.code === 'RECORD_NOT_SHOWN') {
    const given = await db.execute(sql`
      update metersync.events set outcome = 'missing', next_attempt_at = null
      where ${covered} and error_code = ${reason.code} and attempts >= ${olderShownAttemptsMax}`);
    if ((given.rowCount ?? 0) > 0) {
      await db.execute(sql`
        update utility.documents set deleted_at = clock_timestamp(), deleted_reason = 'not_found'
        where id = ${recordId}::uuid and raw is null and deleted_at is null`);
    }
  }
  await postpone(db, covered, readAt, reason);
}

/**
 * Has the events of documents of whose usage not all was shown wait, each time longer. When one of a document has
 * waited as long as an older state needs to be believed, all of them are `missing` together: the usage stays as it is.
 */
export async function postponeDocuments(
  db: Executor,
  recordIds: readonly string[],
  readAt: string,
): Promise<void> {
  const code = 'LISTING_UNSTABLE';
  const message = 'the service does not show all usage of the document, or contradicts itself about it';
  const covered = coveredBy('documents', recordIds, readAt);
  await db.execute(sql`
    update metersync.events set outcome = 'missing', next_attempt_at = null, error_code = ${code}, error = ${message}
    where ${hasOutcome('pending')} and id in (
      select id from metersync.events where ${covered} and record_id in (
        select record_id from metersync.events
        where ${covered} and error_code = ${code} and attempts >= ${olderShownAttemptsMax}) order by id for update)`);
  await postpone(db, covered, readAt, { code, message });
}

/** Events whose record the service showed and Postgres cannot hold are dead, as it is: both keep their bytes. */
async function buryRefused(
  db: Executor,
  kind: 'connections' | 'documents',
  covered: SQL,
  readAt: string,
): Promise<void> {
  const code: FailureCode = 'WAREHOUSE_VALUE_REFUSED';
  await db.execute(sql`
    update metersync.events e
    set outcome = 'dead', next_attempt_at = null, error_code = ${code}, error = refused.error
    from (
      select waiting.id, x.error
      from (select id, record_id from metersync.events where ${covered} order by id for update) waiting
        join metersync.rejected_records x on x.resource = ${kind} and x.record_id = waiting.record_id
      where x.rejected_at >= ${readAt}::timestamptz
    ) refused
    where e.id = refused.id`);
}

/**
 * Events that told of a newer state than the service shows whenever it is asked: its record is the truth, and whatever is
 * read next is taken, as long as it is not older than what other events still wait for.
 */
async function believeOlder(db: Executor, table: SQL, covered: SQL): Promise<void> {
  const believed = await db.execute<{ record_id: string }>(sql`
    update metersync.events set outcome = 'missing', next_attempt_at = null
    where ${covered} and error_code = 'RECORD_NOT_SHOWN' and attempts >= ${olderShownAttemptsMax}
    returning record_id`);
  if (believed.rows.length === 0) return;
  const ids = believed.rows.map(({ record_id }) => record_id);
  await db.execute(sql`
    update ${table} r set synced_at = null, updated = greatest(raw_updated,
      (select max(e.occurred_at) from metersync.events e where e.record_id = r.id::text and ${hasOutcome('pending', 'e')}))
    where id = any(${array(ids, 'uuid')}) and deleted_at is null`);
}

async function buryNotShown(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  elsewhere: SQL,
): Promise<void> {
  const gone = sql`
    update ${kind === 'documents' ? sql`utility.documents` : sql`utility.connections`} r
    set deleted_at = clock_timestamp(), deleted_reason = 'not_found'
    where r.id = any(${array(recordIds, 'uuid')}) and r.deleted_at is null
      and exists (select from metersync.events e where e.record_id = r.id::text and ${hasOutcome('pending', 'e')}
        and e.error_code = 'RECORD_NOT_SHOWN' and e.attempts >= ${notShownAttemptsMax})
      and r.id::text not in (select record_id from metersync.events
        where id = any(${waitingFor(kind, recordIds)}) and ${hasOutcome('pending')} and ${elsewhere})`;
  if (kind === 'connections') await db.execute(gone);
  else {
    await db.execute(sql`
      with gone as (${gone} returning r.id, r.deleted_at)
      update utility.usage_data u set deleted_at = g.deleted_at, deleted_reason = 'document'
      from gone g where u.document_id = g.id and u.deleted_at is null`);
  }
}

/** Postpones what is due of an owner: its work is parked with a reason that `status` shows. */
export async function parkOwner(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: WaitingReason,
): Promise<void> {
  await db.execute(sql`
    update metersync.events set ${postponed(reason, 10)} where ${dueOf(kind, [owner])}`);
}

/**
 * What of a company is known by name only, and so needs its listing read; of meters also those of which the usage of
 * the given documents says something else than they do.
 */
export async function unreadNeighbours(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<{ companies: boolean; meters: boolean }> {
  const ids = array(documentIds, 'uuid');
  const result = await db.execute<{ companies: boolean; meters: boolean }>(sql`
    select
      exists (select from utility.companies where id = ${companyId}::uuid and raw is null)
        or exists (select from utility.sites where company_id = ${companyId}::uuid and raw is null) as companies,
      exists (
        with used as materialized (
          select meter_id from utility.usage_data
          where company_id = ${companyId}::uuid and meter_id is not null and deleted_at is null
        )
        select from used where not exists (select from utility.meters m where m.id = used.meter_id offset 0)
      ) or exists (
        select from unnest(${ids}) as asked (id)
          cross join lateral (
            select meter_id, raw from utility.usage_data
            where document_id = asked.id and deleted_at is null offset 0
          ) u
          cross join lateral (
            select * from utility.meters where id = u.meter_id offset 0
          ) m
        where m.deleted_at is not null
          or m.site_id::text <> metersync.id_of(u.raw -> 'site')
          or m.datasource_type <> u.raw ->> 'datasourceType'
      ) as meters`);
  return result.rows[0] ?? { companies: false, meters: false };
}
