import { type SQL, sql } from 'drizzle-orm';
import type { DeliveredEvent, Replay } from '../../contract/delivery.ts';
import type { EventKind } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/** Which events of the journal; a bound that is absent bounds nothing. Times are ISO 8601, of the receiver's clock. */
export interface EventFilter {
  readonly ids?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly outcome?: EventOutcome | undefined;
  readonly recordId?: string | undefined;
  readonly companyId?: string | undefined;
  readonly code?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** An event as the journal has it, less its payload. Times are text with microseconds. */
export interface JournalledEvent {
  readonly id: string;
  readonly type: string;
  readonly outcome: EventOutcome;
  readonly recordId: string | null;
  readonly companyId: string | null;
  readonly occurredAt: string | null;
  readonly rangeStart: string | null;
  readonly rangeEnd: string | null;
  readonly receivedAt: string;
  readonly recordedAt: string;
  readonly appliedAt: string | null;
  readonly error: string | null;
  readonly errorCode: string | null;
  readonly attempts: number;
  readonly nextAttemptAt: string | null;
  readonly intervalCount: number | null;
  readonly intervalsFound: number | null;
  readonly workflowId: string | null;
  readonly workflowRunId: string | null;
  readonly payloadDroppedAt: string | null;
}

/** With what was signed: JSON as Postgres prints it, or the bytes where it cannot hold them; neither once dropped. */
export interface WholeEvent extends JournalledEvent {
  readonly payload: string | null;
  readonly body: Buffer | null;
}

const columns: SQL = sql.raw(
  [
    'id',
    'type',
    'outcome',
    'record_id as "recordId"',
    'company_id as "companyId"',
    'occurred_at as "occurredAt"',
    'range_start as "rangeStart"',
    'range_end as "rangeEnd"',
    'received_at as "receivedAt"',
    'recorded_at as "recordedAt"',
    'applied_at as "appliedAt"',
    'error',
    'error_code as "errorCode"',
    'attempts',
    'next_attempt_at as "nextAttemptAt"',
    'interval_count::float8 as "intervalCount"',
    'intervals_found::float8 as "intervalsFound"',
    'workflow_id as "workflowId"',
    'workflow_run_id as "workflowRunId"',
    'payload_dropped_at as "payloadDroppedAt"',
  ].join(', '),
);

function matching(filter: EventFilter): SQL {
  const bounds: SQL[] = [];
  if (filter.ids !== undefined) bounds.push(sql`id = any(${array(filter.ids, 'text')})`);
  if (filter.type !== undefined) bounds.push(sql`type = ${filter.type}`);
  if (filter.outcome !== undefined) bounds.push(sql`outcome = ${filter.outcome}`);
  if (filter.recordId !== undefined) bounds.push(sql`record_id = ${filter.recordId}`);
  if (filter.companyId !== undefined) bounds.push(sql`company_id = ${filter.companyId}::uuid`);
  if (filter.code !== undefined) bounds.push(sql`error_code = ${filter.code}`);
  if (filter.since !== undefined) bounds.push(sql`received_at >= ${filter.since}::timestamptz`);
  if (filter.until !== undefined) bounds.push(sql`received_at < ${filter.until}::timestamptz`);
  return bounds.length === 0 ? sql`true` : sql.join(bounds, sql` and `);
}

/** Events of the journal, newest first; `before` is the id of the last event of the page before. */
export async function listEvents(
  db: Executor,
  filter: EventFilter,
  page: { limit: number; before?: string | undefined },
): Promise<JournalledEvent[]> {
  const earlier =
    page.before === undefined
      ? sql`true`
      : sql`(received_at, id) < (select received_at, id from metersync.events where id = ${page.before})`;
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns} from metersync.events where ${matching(filter)} and ${earlier}
    order by received_at desc, id desc limit ${page.limit}`);
  return result.rows;
}

export async function readEvent(db: Executor, id: string): Promise<WholeEvent | undefined> {
  const result = await db.execute<WholeEvent & Record<string, unknown>>(sql`
    select ${columns}, jsonb_pretty(payload) as payload, body from metersync.events where id = ${id}`);
  return result.rows[0];
}

/** Every event of a record, oldest first. */
export async function eventsOfRecord(
  db: Executor,
  kind: Exclude<EventKind, 'ignored'>,
  recordId: string,
): Promise<JournalledEvent[]> {
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns} from metersync.events where record_id = ${recordId} and kind = ${kind}
    order by received_at, id`);
  return result.rows;
}

/** A kept event, ready to be recorded again; `event` is undefined when what was signed has been dropped. */
export interface KeptEvent {
  readonly id: string;
  readonly outcome: EventOutcome;
  readonly event: DeliveredEvent | undefined;
}

/** Where a page of kept events ends. */
export interface KeptCursor {
  readonly receivedAt: string;
  readonly id: string;
}

/** Kept events that match, oldest first, with what was signed: the next page after the cursor. */
export async function keptEvents(
  db: Executor,
  filter: EventFilter,
  replay: Replay,
  page: { limit: number; after: KeptCursor | undefined },
): Promise<{ events: KeptEvent[]; next: KeptCursor | undefined }> {
  const later =
    page.after === undefined
      ? sql`true`
      : sql`(received_at, id) > (${page.after.receivedAt}::timestamptz, ${page.after.id})`;
  // Ids are asked for one by one, and answered one by one: what cannot be replayed is said of each.
  const chosen = replay === 'all' || filter.ids !== undefined ? sql`true` : sql`outcome <> 'applied'`;
  const result = await db.execute<{
    id: string;
    outcome: EventOutcome;
    received_at: string;
    seconds: number;
    iso: string;
    payload: string | null;
    body: Buffer | null;
  }>(sql`
    select id, outcome, received_at, floor(extract(epoch from received_at))::float8 as seconds,
      to_char(received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as iso, payload::text as payload, body
    from metersync.events where ${matching(filter)} and ${chosen} and ${later}
    order by received_at, id limit ${page.limit}`);
  const last = result.rows.at(-1);
  const whole = result.rows.length === page.limit && last !== undefined;
  return {
    events: result.rows.map(({ id, outcome, seconds, iso, payload, body }) => {
      const text = payload ?? body?.toString('utf8');
      const event = text === undefined ? undefined : { id, timestamp: seconds, receivedAt: iso, body: text };
      return { id, outcome, event };
    }),
    next: whole ? { receivedAt: last.received_at, id: last.id } : undefined,
  };
}

/** How many of the given events have which outcome. */
export async function outcomesOf(
  db: Executor,
  ids: readonly string[],
): Promise<Partial<Record<EventOutcome, number>>> {
  const result = await db.execute<{ outcome: EventOutcome; count: number }>(sql`
    select outcome, count(*)::int as count from metersync.events
    where id = any(${array(ids, 'text')}) group by outcome order by outcome`);
  return Object.fromEntries(result.rows.map(({ outcome, count }) => [outcome, count]));
}
