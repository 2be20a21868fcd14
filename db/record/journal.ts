import { sql } from 'drizzle-orm';
import type { Replay } from '../../contract/delivery.ts';
import type { DecodedEvent } from '../../contract/event.ts';
import type { FailureCode } from '../../contract/failures.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/** An event on its way into the journal. `payload` is JSON text; `body` bytes that jsonb cannot hold. */
export interface JournalEntry {
  readonly id: string;
  readonly receivedAt: string;
  readonly event: DecodedEvent;
  readonly payload: string | null;
  readonly body: Buffer | null;
  readonly error: string | null;
  readonly errorCode: FailureCode | null;
}

/** Who records events, and which of those that the journal knows are recorded anew. */
export interface Recording {
  readonly workflow?: { readonly workflowId: string; readonly runId: string } | undefined;
  readonly replay?: Replay | undefined;
  /** Called with every payload that was read. */
  readonly onPayload?: ((type: string, payload: unknown) => void) | undefined;
}

/** Without a replay a delivery revives what came to nothing: to send such an event again is to ask for another try. */
const revived: Readonly<Record<Replay | 'none', readonly string[]>> = {
  none: ['dead', 'missing'],
  unapplied: ['dead', 'missing', 'ignored', 'superseded', 'pending'],
  all: ['dead', 'missing', 'ignored', 'superseded', 'pending', 'applied'],
};

function outcomeOf(entry: JournalEntry): string {
  if (entry.error !== null) return 'dead';
  if (entry.event.kind === 'ignored') return 'ignored';
  return entry.event.deletes ? 'applied' : 'pending';
}

/**
 * Inserts events into the journal. Returns the outcomes, by id, of those that are new, or that are tried again: the dead,
 * the missing and those that a replay asks for. This is where idempotence lives: any other event that is here already has
 * had, or will have, its effect.
 *
 * Events that take effect at once leave nothing to read. Where the company of one is not known it waits all the same, as
 * the service has to be asked about the company.
 */
export async function insertJournal(
  tx: Executor,
  entries: readonly JournalEntry[],
  { workflow, replay }: Recording,
): Promise<Map<string, string>> {
  const column = <T>(read: (entry: JournalEntry) => T): T[] => entries.map(read);
  const again = array(revived[replay ?? 'none'], 'text');
  // What is known is passed over before the conflict, which would lock it.
  const result = await tx.execute<{ id: string; outcome: string }>(sql`
    insert into metersync.events as e
      (id, type, kind, record_id, company_id, occurred_at, range_start, range_end, interval_count,
       received_at, payload, body, outcome, applied_at, error, error_code, workflow_id, workflow_run_id)
    select id, type, kind, record_id, company_id, metersync.read_time(occurred_at),
      case when kind = 'interval' then metersync.read_time(payload ->> 'start') end,
      case when kind = 'interval' then metersync.read_time(payload ->> 'end') end,
      case when kind = 'interval' and payload ->> 'intervalCount' ~ '^\\d{1,18}$'
        then (payload ->> 'intervalCount')::bigint end,
      received_at, payload, decode(body, 'base64'), outcome,
      case when outcome = 'applied' then clock_timestamp() end, error, error_code,
      ${workflow?.workflowId ?? null}::text, ${workflow?.runId ?? null}::text
    from (
      select id, type, kind, record_id, company_id, occurred_at, received_at, payload::jsonb as payload, body,
        case when outcome <> 'applied' or exists (
          select from utility.companies known where known.id = t.company_id offset 0) then outcome else 'pending' end as outcome,
        error, error_code
      from unnest(
        ${array(
          column((e) => e.id),
          'text',
        )}, ${array(
          column((e) => e.event.type),
          'text',
        )},
        ${array(
          column((e) => e.event.kind),
          'text',
        )}, ${array(
          column((e) => e.event.recordId),
          'text',
        )},
        ${array(
          column((e) => e.event.companyId),
          'uuid',
        )}, ${array(
          column((e) => e.event.occurredAt),
          'text',
        )},
        ${array(
          column((e) => e.receivedAt),
          'timestamptz',
        )}, ${array(
          column((e) => e.payload),
          'text',
        )},
        ${array(
          column((e) => e.body?.toString('base64') ?? null),
          'text',
        )}, ${array(column(outcomeOf), 'text')},
        ${array(
          column((e) => e.error),
          'text',
        )}, ${array(
          column((e) => e.errorCode),
          'text',
        )}
      ) as t (id, type, kind, record_id, company_id, occurred_at, received_at, payload, body, outcome, error, error_code)
      where not exists (select from metersync.events known where known.id = t.id and known.outcome <> all(${again}))
    ) incoming
    order by id
    on conflict (id) do update set
      type = excluded.type, kind = excluded.kind, record_id = excluded.record_id, company_id = excluded.company_id,
      occurred_at = excluded.occurred_at, range_start = excluded.range_start, range_end = excluded.range_end,
      interval_count = excluded.interval_count,
      recorded_at = clock_timestamp(), payload = excluded.payload, body = excluded.body,
      payload_dropped_at = null, outcome = excluded.outcome, applied_at = excluded.applied_at,
      error = excluded.error, error_code = excluded.error_code, attempts = 0, next_attempt_at = null,
      workflow_id = excluded.workflow_id, workflow_run_id = excluded.workflow_run_id
    where e.outcome = any(${again})
    returning id, outcome`);
  return new Map(result.rows.map((row) => [row.id, row.outcome]));
}
