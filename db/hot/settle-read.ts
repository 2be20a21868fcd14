import { type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { isDeletion } from '../events/items.ts';
import { backOff, postponedAs, settledAs } from '../events/outcomes.ts';
import { eventKind, pendingOf, queueOf } from '../events/queue.ts';
import { tableOf } from '../resources.ts';
import { journal, rejectedRecords } from '../schema/metersync.ts';

/** What a read is that settles events. */
export interface SettledBy {
  /** The company for which records were read; absent if they were read for any. */
  readonly companyId?: string | undefined;
  /** Records that the service showed, so that it has not deleted them. */
  readonly shown?: readonly string[] | undefined;
}

/** How a read settled the events of a record. */
export interface RecordSettled extends Record<string, unknown> {
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
 * began. After `olderStateAttemptsMax` such attempts it is missing, or a deletion superseded. If the
 * event or the record has no `updated`, nothing says whether the read shows the event's state, so a
 * second read is needed, when the service no longer lags behind the event. With a company, only events
 * in the company's queue count as attempts: the others wait for the listing of another company. It
 * ends each read of a catch-up. Measured: 0.14 ms and 19 blocks for one record; 0.56 ms and 172 blocks for nine.
 */
export async function settleRead(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  { companyId, shown = [] }: SettledBy = {},
): Promise<RecordSettled[]> {
  const read = sql`${readAt}::timestamptz`;
  const { rows } = await hot(db, 'settleRead').execute<RecordSettled>(sql`
    with covered as materialized (
      select
        e.id,
        e.record_id,
        refused.error as refused,
        e.error,
        e.attempts as attempts,
        case when e.error_code = ${notShown} then e.attempts else 0 end as tried,
        (e.due_at <= ${read} or e.attempts = 0) and ${companyId === undefined ? sql`true` : sql`e.queue = ${queueOf(eventKind[kind], companyId)}`} as was_due,
        r.is_unsure and not d.deletes as is_unsure,
        d.deletes,
        case
          when d.deletes then r.outcome_of_deletion
          when r.is_unsure then null
          when coalesce(e.occurred_at, '-infinity') <= r.shown then r.outcome
          when refused.error is not null then 'dead'
        end as outcome
      from ${pendingOf.records(kind, recordIds)}
        cross join lateral (select ${isDeletion(sql`e.type`)} as deletes) d
        left join lateral (
          select
            ${outcomeOf} as outcome,
            ${outcomeOfDeletion(sql`e.record_id = any(${array(shown, 'text')})`)} as outcome_of_deletion,
            ${coveredBy(read)} as shown,
            raw is not null
              and deleted_at is null
              and (raw_updated is null or e.occurred_at is null)
              and ${read} < e.recorded_at + make_interval(secs => ${recordPolicy.mayLagSeconds}) as is_unsure
          from ${tableOf(kind)}
          where id = e.record_id::uuid
          offset 0
        ) r on true
        left join lateral (
          select error
          from ${rejectedRecords}
          where resource = ${kind}
            and record_id = e.record_id
            and rejected_at >= ${read}
          offset 0
        ) refused on true
      where e.recorded_at <= ${read}
    ), judged as materialized (
      select
        *,
        outcome is null and was_due and tried >= ${recordPolicy.olderStateAttemptsMax} as given_up
      from covered
    ), settled as (
      update ${journal} e set
        ${settledAs(
          sql`coalesce(j.outcome, case when j.deletes then 'superseded' else 'missing' end)`,
          {
            error: sql`case
          when j.given_up or j.outcome = 'missing' then j.error
          when j.outcome = 'dead' then j.refused
        end`,
            errorCode: sql`case
          when j.given_up or j.outcome = 'missing' then e.error_code
          when j.outcome = 'dead' then ${refusedCode}
        end`,
            attempts: sql`j.attempts`,
          },
        )}
      from judged j
      where e.id = any(array(select id from judged where outcome is not null or given_up))
        and e.id = j.id
    ), later as (
      update ${journal} e set
        ${postponedAs({
          tried: sql`j.tried`,
          reason: stateNotShown,
          wait: sql`greatest(
          ${backOff(sql`j.tried`)},
          case when j.is_unsure then make_interval(secs => ${recordPolicy.mayLagSeconds}) end
        )`,
        })}
      from judged j
      where e.id = any(array(select id from judged where outcome is null and was_due and not given_up))
        and e.id = j.id
    )
    select
      record_id,
      count(outcome)::int as settled,
      count(*) filter (where outcome is null and not given_up)::int as waiting,
      count(*) filter (where given_up)::int as missing
    from judged
    group by record_id`);
  return rows;
}

export const notShown: FailureCode = 'RECORD_NOT_SHOWN';
const stateNotShown = {
  code: notShown,
  message: 'the service does not show the state that this event named',
};
const refusedCode: FailureCode = 'WAREHOUSE_VALUE_REFUSED';

/** The outcome of events that a row's state covers. */
const outcomeOf = sql.raw(`case
            when deleted_reason = 'not_found' then 'missing'
            when deleted_at is not null then 'superseded'
            else 'applied'
          end`);

/**
 * The outcome of a deletion: superseded if the row is live, and none yet while the service still shows the record,
 * because the answer may lag behind the event.
 */
const outcomeOfDeletion = (isShown: SQL): SQL => sql`case
              when deleted_at is null then 'superseded'
              when deleted_reason = 'event' and ${isShown} then null
              else 'applied'
            end`;

/** The newest state that a row covers: without `updated`, all events before its read. */
const coveredBy = (readAt: SQL): SQL => sql`case
            when deleted_reason in ('not_found', 'absent', 'listed') then 'infinity'
            when deleted_reason = 'event' then greatest(updated, raw_updated)
            when raw is not null and raw_updated is null and synced_at >= ${readAt} then 'infinity'
            else raw_updated
          end`;
