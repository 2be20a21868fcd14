import { sql } from 'drizzle-orm';
import type { DecodedEvent } from '../../contract/event.ts';
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
}

function outcomeOf(entry: JournalEntry): string {
  if (entry.error !== null) return 'dead';
  if (entry.event.kind === 'ignored') return 'ignored';
  return entry.event.deletes ? 'applied' : 'pending';
}

/**
 * Inserts events into the journal and returns the ids that are new, or that were dead and are tried again.
 * This is where idempotence lives: an event that is here already has had, or will have, its effect.
 */
export async function insertJournal(tx: Executor, entries: readonly JournalEntry[]): Promise<string[]> {
  const column = <T>(read: (entry: JournalEntry) => T): T[] => entries.map(read);
  const result = await tx.execute<{ id: string }>(sql`
    insert into metersync.events as e
      (id, type, kind, record_id, company_id, occurred_at, range_start, range_end,
       received_at, payload, body, outcome, applied_at, error)
    select id, type, kind, record_id, company_id, metersync.read_time(occurred_at),
      case when kind = 'interval' then metersync.read_time(payload ->> 'start') end,
      case when kind = 'interval' then metersync.read_time(payload ->> 'end') end,
      received_at, payload, decode(body, 'base64'), outcome,
      case when outcome = 'applied' then clock_timestamp() end, error
    from (
      select id, type, kind, record_id, company_id, occurred_at, received_at, payload::jsonb as payload, body,
        outcome, error
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
        )}
      ) as t (id, type, kind, record_id, company_id, occurred_at, received_at, payload, body, outcome, error)
    ) incoming
    order by id
    on conflict (id) do update set
      type = excluded.type, kind = excluded.kind, record_id = excluded.record_id, company_id = excluded.company_id,
      occurred_at = excluded.occurred_at, range_start = excluded.range_start, range_end = excluded.range_end,
      recorded_at = clock_timestamp(), payload = excluded.payload, body = excluded.body,
      outcome = excluded.outcome, applied_at = excluded.applied_at, error = excluded.error, next_attempt_at = null
    where e.outcome = 'dead'
    returning id`);
  return result.rows.map((row) => row.id);
}
