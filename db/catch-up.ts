import { type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../contract/failures.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';
import { serviceParked } from './parking.ts';

/** A record that answered 404 this often after its event is taken for gone. */
export const notFoundAttemptsMax = 5;

const due: SQL = sql`outcome = 'pending' and coalesce(next_attempt_at, '-infinity') <= clock_timestamp()`;
/** Doubling from one second to a quarter of an hour. */
const nextDelay: SQL = sql`least(interval '15 minutes', interval '1 second' * power(2, least(attempts, 12)))`;

/** Why events wait: a failure of the catalogue, in words. */
export interface WaitingReason {
  readonly code: FailureCode | null;
  readonly message: string;
}

const eventKind: Readonly<Record<CatchUpKind, string>> = {
  connections: 'connection',
  documents: 'document',
  intervals: 'interval',
};

/**
 * Companies, or meters for intervals, that have something due; those that wait longest come first. None while nothing
 * may be asked of the service.
 */
export async function dueOwners(db: Executor, kind: CatchUpKind, limit: number): Promise<string[]> {
  const owner = kind === 'intervals' ? sql`record_id` : sql`company_id::text`;
  const result = await db.execute<{ owner: string }>(sql`
    select ${owner} as owner from metersync.events
    where kind = ${eventKind[kind]} and ${due} and not ${serviceParked}
    group by 1 order by min(recorded_at), 1 limit ${limit}`);
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
    where kind = ${eventKind[kind]} and company_id = ${companyId}::uuid and ${due}
    group by record_id order by min(recorded_at), record_id limit ${limit}`);
  return result.rows.map((row) => row.record_id);
}

/**
 * Settles the events of the given records that were in the journal before the read began: those whose state, or a
 * newer one, is now in the warehouse are applied; those of records that are gone are superseded, whichever way that
 * was learnt; those that were due and are neither wait, each time longer.
 * `notFound` are documents that the service does not have: after some attempts they are taken for gone.
 */
export async function settleRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  notFound: readonly string[] = [],
): Promise<{ applied: number; waiting: number }> {
  const table = kind === 'documents' ? sql`utility.documents` : sql`utility.connections`;
  const covered = sql`outcome = 'pending' and kind = ${eventKind[kind]}
    and record_id = any(${array(recordIds, 'text')}) and recorded_at <= ${readAt}::timestamptz`;
  if (notFound.length > 0) await buryNotFound(db, notFound);
  const applied = await db.execute(sql`
    update metersync.events e
    set outcome = case when settled.gone then 'superseded' else 'applied' end,
      applied_at = clock_timestamp(), error = null, error_code = null, next_attempt_at = null
    from (
      select id, (
        select r.deleted_at is not null from ${table} r
        where r.id = record_id::uuid
          and (r.raw_updated >= occurred_at or r.deleted_reason in ('not_found', 'absent'))
      ) as gone
      from metersync.events where ${covered} order by id for update
    ) settled
    where e.id = settled.id and settled.gone is not null`);
  const waiting = await db.execute(sql`
    update metersync.events
    set attempts = attempts + 1, next_attempt_at = clock_timestamp() + ${nextDelay},
      error_code = null, error = 'the service does not show the state that this event told of yet'
    where ${covered} and coalesce(next_attempt_at, '-infinity') <= ${readAt}::timestamptz`);
  return { applied: applied.rowCount ?? 0, waiting: waiting.rowCount ?? 0 };
}

async function buryNotFound(db: Executor, documentIds: readonly string[]): Promise<void> {
  await db.execute(sql`
    with gone as (
      update utility.documents d set deleted_at = clock_timestamp(), deleted_reason = 'not_found'
      where d.id = any(${array(documentIds, 'uuid')}) and d.deleted_at is null
        and exists (select from metersync.events e where e.record_id = d.id::text and e.outcome = 'pending'
          and e.attempts >= ${notFoundAttemptsMax})
      returning d.id, d.deleted_at
    )
    update utility.usage_data u set deleted_at = g.deleted_at, deleted_reason = 'document'
    from gone g where u.document_id = g.id and u.deleted_at is null`);
}

/** Postpones what is due of an owner: its work is parked with a reason that `status` shows. */
export async function parkOwner(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: WaitingReason,
): Promise<void> {
  const of = kind === 'intervals' ? sql`record_id = ${owner}` : sql`company_id = ${owner}::uuid`;
  await db.execute(sql`
    update metersync.events
    set attempts = attempts + 1, next_attempt_at = clock_timestamp() + greatest(interval '10 seconds', ${nextDelay}),
      error = ${reason.message}, error_code = ${reason.code}
    where kind = ${eventKind[kind]} and ${of} and ${due}`);
}

export interface DueRange {
  readonly start: string;
  readonly end: string;
}

/** Announced ranges of a meter, overlapping and touching ones merged, as ISO times in UTC. */
export async function dueRanges(db: Executor, meterId: string): Promise<DueRange[]> {
  const iso = sql.raw(`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`);
  const result = await db.execute<{ start: string; end: string }>(sql`
    select to_char(lower(span) at time zone 'UTC', ${iso}) as start, to_char(upper(span) at time zone 'UTC', ${iso}) as end
    from (
      select unnest(range_agg(tstzrange(range_start, range_end, '[]'))) as span
      from metersync.events where kind = 'interval' and record_id = ${meterId} and ${due}
    ) merged
    order by span`);
  return result.rows.map(({ start, end }) => ({ start, end }));
}

/** Settles the announcements of a meter that the given ranges, read from `readAt` on, cover. */
export async function settleRanges(
  db: Executor,
  meterId: string,
  readAt: string,
  ranges: readonly DueRange[],
): Promise<number> {
  const result = await db.execute(sql`
    update metersync.events e
    set outcome = 'applied', applied_at = clock_timestamp(), error = null, error_code = null, next_attempt_at = null
    from (
      select range_agg(tstzrange(s::timestamptz, e::timestamptz, '[]')) as spans
      from unnest(${array(
        ranges.map((r) => r.start),
        'text',
      )}, ${array(
        ranges.map((r) => r.end),
        'text',
      )}) as t (s, e)
    ) fetched
    where e.outcome = 'pending' and e.kind = 'interval' and e.record_id = ${meterId}
      and e.recorded_at <= ${readAt}::timestamptz
      and tstzrange(e.range_start, e.range_end, '[]') <@ fetched.spans`);
  return result.rowCount ?? 0;
}

/** What of a company is known by name only, and so needs its listing read. */
export async function unreadNeighbours(
  db: Executor,
  companyId: string,
): Promise<{ companies: boolean; meters: boolean }> {
  const result = await db.execute<{ companies: boolean; meters: boolean }>(sql`
    select
      exists (select from utility.companies where id = ${companyId}::uuid and raw is null)
        or exists (select from utility.sites where company_id = ${companyId}::uuid and raw is null) as companies,
      exists (
        select from utility.usage_data u left join utility.meters m on m.id = u.meter_id
        where u.company_id = ${companyId}::uuid and u.meter_id is not null and u.deleted_at is null and m.id is null
      ) as meters`);
  return result.rows[0] ?? { companies: false, meters: false };
}

/** The company that a meter belongs to, as the meter's row or an event of its intervals says. */
export async function companyOfMeter(
  db: Executor,
  meterId: string,
): Promise<{ companyId: string | null; known: boolean }> {
  const result = await db.execute<{ company_id: string | null; known: boolean }>(sql`
    select
      coalesce(
        (select company_id from utility.meters where id = ${meterId}),
        (select c.id from metersync.events e join utility.companies c on c.external_id = e.payload ->> 'companyExternalId'
          where e.kind = 'interval' and e.record_id = ${meterId} limit 1)) as company_id,
      exists (select from utility.meters where id = ${meterId}) as known`);
  const row = result.rows[0];
  return { companyId: row?.company_id ?? null, known: row?.known ?? false };
}
