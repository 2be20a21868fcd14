import { ne, type SQL, sql } from 'drizzle-orm';
import { type EventKind, probeEventType } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { events, journal } from '../schema/metersync.ts';
import { amongThem, type EventFilter, event, matching } from './event-filter.ts';

/** An event of the journal without its payload. Times are text with microseconds. */
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

/**
 * An event with its signed payload: JSON as Postgres prints it, or bytes if it cannot hold them;
 * neither once dropped.
 */
export interface EventDetails extends JournalledEvent {
  readonly payload: string | null;
  readonly body: Buffer | null;
}

/** The columns of a `JournalledEvent`. Counts are numbers: a bigint would be text. */
const columns: SQL = sql`
      ${event.id},
      ${event.type},
      ${event.outcome},
      ${event.recordId} as "recordId",
      ${event.companyId} as "companyId",
      ${event.occurredAt} as "occurredAt",
      ${event.rangeStart} as "rangeStart",
      ${event.rangeEnd} as "rangeEnd",
      ${event.receivedAt} as "receivedAt",
      ${event.recordedAt} as "recordedAt",
      ${event.appliedAt} as "appliedAt",
      ${event.error},
      ${event.errorCode} as "errorCode",
      ${event.attempts},
      ${event.nextAttemptAt} as "nextAttemptAt",
      ${event.intervalCount}::float8 as "intervalCount",
      ${event.intervalsFound}::float8 as "intervalsFound",
      ${event.workflowId} as "workflowId",
      ${event.workflowRunId} as "workflowRunId",
      ${event.payloadDroppedAt} as "payloadDroppedAt"`;

/** Lists events, newest first; `before` is the id of the last event of the previous page. */
export async function listEvents(
  db: Executor,
  filter: EventFilter,
  page: { limit: number; before?: string | undefined },
): Promise<JournalledEvent[]> {
  const { limit, before } = page;
  const earlier =
    before === undefined
      ? sql`true`
      : sql`(${event.receivedAt}, ${event.id}) < (
        select
          ${journal.receivedAt},
          ${journal.id}
        from ${journal}
        where ${journal.id} = ${before}
      )`;
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns}
    from ${amongThem(filter)}
    where ${matching(filter)}
      and ${earlier}
    order by ${event.receivedAt} desc, ${event.id} desc
    limit ${limit}`);
  return result.rows;
}

/**
 * The payload with indentation, unless that may take more than some megabytes: nested lines are
 * indented by their depth.
 */
const laidOut: SQL = sql`case
        when octet_length(printed.text) <= 100000
          and length(printed.text) - length(translate(printed.text, '[{', '')) <= 200
          then jsonb_pretty(${event.payload})
        else printed.text
      end`;

/** Reads an event with its signed payload, unless that was dropped. */
export async function readEvent(db: Executor, id: string): Promise<EventDetails | undefined> {
  const result = await db.execute<EventDetails & Record<string, unknown>>(sql`
    select ${columns},
      ${laidOut} as payload,
      ${event.body}
    from ${events} ${event}
      cross join lateral (
        select ${event.payload}::text as text
        offset 0
      ) printed
    where ${event.id} = ${id}`);
  return result.rows[0];
}

/** Counts matching events, up to `most` + 1. */
export async function countEvents(
  db: Executor,
  filter: EventFilter,
  most: number,
): Promise<number> {
  const { rows } = await db.execute<{ events: number }>(sql`
    select count(*)::int as events
    from (
      select
      from ${amongThem(filter)}
      where ${matching(filter)}
      limit ${most + 1}
    ) counted`);
  return rows[0]?.events ?? 0;
}

/** Reads all events of a record, oldest first. */
export async function eventsOfRecord(
  db: Executor,
  kind: Exclude<EventKind, 'ignored'>,
  recordId: string,
): Promise<JournalledEvent[]> {
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns}
    from ${events} ${event}
    where ${event.recordId} = ${recordId}
      and ${event.kind} = ${kind}
    order by ${event.receivedAt}, ${event.id}`);
  return result.rows;
}

/** Lists the types of all events ever received. Probes are not events of the service. */
export async function typesSeen(db: Executor): Promise<string[]> {
  const seen = await db
    .select({ type: journal.type })
    .from(journal)
    .where(ne(journal.type, probeEventType))
    .groupBy(journal.type);
  return seen.map(({ type }) => type);
}

/** Counts the given events by outcome. */
export async function outcomesOf(
  db: Executor,
  ids: readonly string[],
): Promise<Partial<Record<EventOutcome, number>>> {
  const counts = await db
    .select({ outcome: events.outcome, count: sql<number>`count(*)::int` })
    .from(events)
    .where(sql`${events.id} = any(${array(ids, 'text')})`)
    .groupBy(events.outcome)
    .orderBy(events.outcome);
  return Object.fromEntries(counts.map(({ outcome, count }) => [outcome, count]));
}
