import { and, gt, inArray, isNull, lte, type SQL, sql } from 'drizzle-orm';
import { companyEventKinds, type DecodedEvent, type Replay } from '../../contract/event.ts';
import type { FailureCode } from '../../contract/failures.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, isAmong, unnested } from '../connection/arrays.ts';
import { type Database, type Executor, setLocal, withTransaction } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';

/**
 * An event for the journal. `payload` is JSON text that Postgres can hold; `body` has the bytes of
 * the event if the payload is not exactly what was sent.
 */
export interface JournalEntry {
  readonly id: string;
  readonly receivedAt: string;
  readonly event: DecodedEvent;
  readonly payload: string | null;
  readonly body: Buffer | null;
  /** The texts that were replaced in the payload, by their paths, as JSON; absent if there are none. */
  readonly replaced?: string | undefined;
  readonly error: string | null;
  readonly errorCode: FailureCode | null;
}

/** How an event arrived. Times are of the warehouse, as text with microseconds. */
interface FreshEvent extends Record<string, unknown> {
  readonly outcome: EventOutcome;
  readonly occurredAt: string | null;
  readonly recordedAt: string;
}

/** Which workflow records events, and which existing events it records again. */
export interface RecordedBy {
  readonly workflow?: { readonly workflowId: string; readonly runId: string } | undefined;
  readonly replay?: Replay | undefined;
  /** Whether the workflow reads the records next: the events are due only a little later. */
  readonly drains?: boolean | undefined;
}

/**
 * The outcomes that a delivery records again: a repeated delivery asks for another attempt. A run
 * never revives events that it recorded itself, or each try would repeat the work of dead events.
 */
const revived: Readonly<Record<Replay | 'none', readonly EventOutcome[]>> = {
  none: ['dead', 'missing'],
  unapplied: ['dead', 'missing', 'ignored', 'superseded', 'pending'],
  all: ['dead', 'missing', 'ignored', 'superseded', 'pending', 'applied'],
};

function outcomeOf(entry: JournalEntry): EventOutcome {
  if (entry.error !== null) return 'dead';
  return entry.event.kind === 'ignored' ? 'ignored' : 'pending';
}

/**
 * Inserts events into the journal and returns those that are new or recorded again. Their ids are what
 * makes recording idempotent: any other event in the journal has had its effect, or will have it. Also
 * writes the `public_id` that events name to companies without one, because the API's record may not
 * have it. No event creates a company: see `introduceCompany`.
 */
export async function insertJournal(
  tx: Executor,
  entries: readonly JournalEntry[],
  { workflow, replay, drains = false }: RecordedBy,
): Promise<Map<string, FreshEvent>> {
  const isRevived = sql`e.outcome = any(${array(revived[replay ?? 'none'], 'text')})
          and e.workflow_run_id is distinct from ${workflow?.runId ?? ''}`;
  const delivered = unnested('t', entries, [
    ['id', 'text', (e) => e.id],
    ['type', 'text', (e) => e.event.type],
    ['kind', 'text', (e) => e.event.kind],
    ['record_id', 'text', (e) => e.event.recordId],
    ['company_id', 'uuid', (e) => e.event.companyId],
    ['occurred_at', 'text', (e) => e.event.occurredAt],
    ['received_at', 'timestamptz', (e) => e.receivedAt],
    ['payload', 'text', (e) => e.payload],
    ['body', 'text', (e) => e.body?.toString('base64') ?? null],
    ['outcome', 'text', outcomeOf],
    ['error', 'text', (e) => e.error],
    ['error_code', 'text', (e) => e.errorCode],
  ]);
  const { rows } = await prepared(tx, 'insertJournal').execute<FreshEvent & { id: string }>(sql`
    with incoming as materialized (
      select
        id, type, kind, record_id, company_id, received_at, outcome, error, error_code,
        metersync.read_time(occurred_at) as occurred_at,
        payload::jsonb as payload,
        decode(body, 'base64') as body
      from ${delivered}
      -- Existing events are skipped here, because a conflict would lock them.
      where not exists (select from ${journal} e where e.id = t.id and not (${isRevived}))
    ), fresh as (
      insert into ${journal} as e (
        id, type, kind, record_id, company_id, occurred_at, range_start, range_end, interval_count,
        received_at, outcome, queue, due_at, error, error_code, workflow_id, workflow_run_id
      )
      select
        id, type, kind, record_id, company_id, occurred_at, ${boundOf('start')}, ${boundOf('end')},
        case
          when kind = 'interval' and payload ->> 'intervalCount' ~ '^[0-9]{1,18}$'
          then (payload ->> 'intervalCount')::bigint
        end,
        received_at,
        outcome,
        case
          when outcome = 'pending' then kind || '/' || coalesce(company_id::text, record_id)
        end,
        case
          when outcome = 'pending'
          then clock_timestamp()
            + make_interval(secs => ${drains ? recordPolicy.drainedSeconds : 0})
        end,
        error,
        error_code,
        ${workflow?.workflowId ?? null}::text,
        ${workflow?.runId ?? null}::text
      from incoming
      order by id
      on conflict (id) do update set
        type = excluded.type,
        kind = excluded.kind,
        record_id = excluded.record_id,
        company_id = excluded.company_id,
        occurred_at = excluded.occurred_at,
        range_start = excluded.range_start,
        range_end = excluded.range_end,
        interval_count = excluded.interval_count,
        outcome = excluded.outcome,
        queue = excluded.queue,
        due_at = excluded.due_at,
        error = excluded.error,
        error_code = excluded.error_code,
        workflow_id = excluded.workflow_id,
        workflow_run_id = excluded.workflow_run_id,
        recorded_at = clock_timestamp(),
        settled_at = null,
        attempts = 0,
        intervals_found = null,
        payload_dropped_at = null
      where ${isRevived}
        -- Another delivery may have recorded the event since this statement began.
        and e.recorded_at = (select b.recorded_at from ${journal} b where b.id = e.id)
      returning id, outcome, occurred_at, recorded_at
    ), kept as (
      insert into ${eventPayloads} (id, payload, body)
      select id, payload, body
      from incoming
      where id in (select id from fresh)
      on conflict (id) do update set payload = excluded.payload, body = excluded.body
    ), named as materialized (
      select distinct on (company_id)
        company_id as id,
        payload #>> '{company,publicId}' as public_id
      from incoming
      where id in (select id from fresh)
        and kind = any(${array(companyEventKinds, 'text')})
        and payload #>> '{company,publicId}' is not null
      order by company_id, occurred_at desc nulls last, payload -> 'company'
    ), unnamed as materialized (
      select id
      from ${companies}
      where id = any(array(select id from named))
        and public_id is null
      order by id
      for no key update
    ), introduced as (
      update ${companies} c set public_id = named.public_id
      from named
      where c.id = any(array(select id from unnamed))
        and named.id = c.id
    )
    select id, outcome, occurred_at as "occurredAt", recorded_at as "recordedAt"
    from fresh`);
  return new Map(rows.map((event) => [event.id, event]));
}

/** What a date as a bound adds to its midnight in UTC: nobody says in which zone its day is. */
const zonesOf = { start: `- interval '14 hours'`, end: `+ interval '36 hours'` } as const;

/**
 * A bound of an event's range; null without a payload. Dates stand for their whole days in any zone.
 * Ranges are read with ISO texts, which cannot express times before year 1 in UTC, or after year 9999.
 */
const boundOf = (field: 'start' | 'end'): SQL =>
  sql.raw(`case
          when kind = 'interval' and payload is not null
          then least(greatest(
            case
              when payload ->> '${field}' ~ '^\\d{4}-\\d{2}-\\d{2}$'
                and left(payload ->> 'start', 10) <= left(payload ->> 'end', 10)
              then metersync.read_time(payload ->> '${field}') ${zonesOf[field]}
              else metersync.read_time(payload ->> '${field}')
            end,
            '0001-01-01T00:00:00Z'
          ), '9999-12-31T23:59:59.999999Z')
        end`);

export interface PayloadsDropped {
  readonly dropped: number;
  /** When the last event that was looked at was received; null when no later one is old enough. */
  readonly last: string | null;
}

/**
 * Of the `limit` oldest events with payloads received after `after` and more than `days` ago, drops
 * the payloads of settled events. Rows stay, so that a late delivery finds its id. Pending, dead
 * and missing events keep their bytes at any age, because no other copy exists.
 */
export async function dropPayloads(
  db: Database,
  { days, limit, after = null }: { days: number; limit: number; after?: string | null },
): Promise<PayloadsDropped> {
  const { id, receivedAt, payloadDroppedAt, outcome } = journal;
  const isOld = and(
    isNull(payloadDroppedAt),
    gt(receivedAt, sql`coalesce(${after}::timestamptz, '-infinity')`),
    sql`${receivedAt} < clock_timestamp() - make_interval(days => ${days}::int)`,
  );
  return await withTransaction(db, async (tx) => {
    // Otherwise the planner may sort all old events for each batch, for lack of good estimates.
    await setLocal(tx, { enable_sort: 'off', enable_bitmapscan: 'off', enable_seqscan: 'off' });
    const [end] = await tx
      .select({ last: receivedAt })
      .from(journal)
      .where(isOld)
      .orderBy(receivedAt)
      .offset(limit - 1)
      .limit(1);
    const dropped = await tx
      .update(journal)
      .set({ payloadDroppedAt: sql`clock_timestamp()` })
      .where(
        and(
          isOld,
          end && lte(receivedAt, end.last),
          inArray(outcome, ['applied', 'superseded', 'ignored']),
        ),
      )
      .returning({ id });
    const ids = dropped.map((event) => event.id);
    await tx.delete(eventPayloads).where(isAmong(eventPayloads.id, ids));
    return { dropped: ids.length, last: end?.last ?? null };
  });
}
