import { type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, type RowOf } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { isDeletion } from '../events/items.ts';
import { settledAs, unlessRecordedAnew } from '../events/settling.ts';
import { tableOf } from '../resources.ts';
import { journal, rejectedRecords, staleRecords } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import { postpone } from './postpone.ts';
import { eventKind, keyOf, refreshStale, staleOf } from './stale.ts';

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
  const judged = await settleJudged(db, kind, recordIds, readAt);
  const idsOf = (which: readonly Judged[]): string[] => which.map(({ record_id }) => record_id);
  const applied = judged.filter(({ settled }) => settled > 0).length;
  const left = judged.filter(({ settled, waiting }) => settled === 0 && waiting > 0);
  // Of the others, some events were settled, came during the read or are being recorded anew: looks up what
  // still waits.
  const again = judged.filter((one) => !one.done && !left.includes(one));
  if (again.length > 0) await refreshStale(db, eventKind[kind], idsOf(again));
  if (left.length === 0) return { applied, waiting: 0 };
  const reason = {
    code: 'RECORD_NOT_SHOWN',
    message: 'the service does not show the state that this event named',
  } as const;
  const { waiting, givenUp } = await postpone(
    db,
    kind,
    staleOf.records(kind, idsOf(left)),
    reason,
    {
      dueAt: readAt,
      since: readAt,
      attemptsMax: recordPolicy.olderStateAttemptsMax,
      ...(companyId === undefined ? {} : { owner: companyId }),
    },
  );
  if (givenUp.length > 0) await acceptOlder(db, kind, givenUp);
  return { applied, waiting };
}

/** How a read settles a stale record. */
type Judged = RowOf<typeof staleRecords.recordId> & {
  /** Events that the read settled, and those recorded before it that it does not cover. */
  readonly settled: number;
  readonly waiting: number;
  /** Whether nothing waits any more: the record is stale no longer. */
  readonly done: boolean;
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
    ), pending as materialized (
      select
        w.key,
        w.error,
        w.error_code,
        w.attempts,
        refused.error as refused,
        e.id,
        e.recorded_at <= ${read} as came_before,
        case
          when e.recorded_at > ${read} then null
          when coalesce(e.occurred_at, '-infinity') <= r.shown then
            case when r.outcome = 'superseded' and ${isDeletion(sql`e.type`)} then 'applied' else r.outcome end
          when refused.error is not null then 'dead'
        end as outcome
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
        cross join lateral (
          select id, type, recorded_at, occurred_at
          from ${journal}
          where record_id = w.record_id
            and recorded_at >= w.since
            and kind = ${eventKind[kind]}
            and outcome = 'pending'
          offset 0
          ${unlessRecordedAnew}
        ) e
    ), settled as (
      update ${journal} e set
        ${settledAs(sql`p.outcome`, {
          error: sql`case p.outcome when 'dead' then p.refused when 'missing' then p.error end`,
          errorCode: sql`case p.outcome
          when 'dead' then ${refusedCode}
          when 'missing' then p.error_code
        end`,
          attempts: sql`p.attempts`,
        })}
      from pending p
      where e.id = any(array(select id from pending where outcome is not null))
        and e.id = p.id
    ), judged as materialized (
      select
        w.key,
        w.record_id,
        coalesce(counted.settled, 0) as settled,
        coalesce(counted.waiting, 0) as waiting,
        -- A record has more events where others are being recorded, for the first time or anew: they are
        -- not in this statement's snapshot, or locked.
        coalesce(counted.settled = counted.events and counted.events >= w.events, false) as done
      from waiting w
        left join (
          select
            key,
            count(*)::int as events,
            count(outcome)::int as settled,
            count(*) filter (where came_before and outcome is null)::int as waiting
          from pending
          group by key
        ) counted on counted.key = w.key
    ), done as (
      delete from ${staleRecords}
      where key = any(array(select key from judged where done))
    )
    select record_id, settled, waiting, done
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
