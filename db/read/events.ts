import { count, type SQL, sql } from 'drizzle-orm';
import type { EventKind } from '../../contract/event.ts';
import { consoleBounds } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { events, journal } from '../schema/metersync.ts';
import { type EventFilter, event } from './event-filter.ts';
import type { Place } from './event-place.ts';
import { foundEvents, readPart } from './found-events.ts';

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
  /** When a read of its record settled it, or it was given up. */
  readonly settledAt: string | null;
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
      ${event.settledAt} as "settledAt",
      ${event.error},
      ${event.errorCode} as "errorCode",
      ${event.attempts},
      ${event.nextAttemptAt} as "nextAttemptAt",
      ${event.intervalCount}::float8 as "intervalCount",
      ${event.intervalsFound}::float8 as "intervalsFound",
      ${event.workflowId} as "workflowId",
      ${event.workflowRunId} as "workflowRunId",
      ${event.payloadDroppedAt} as "payloadDroppedAt"`;

/** A page of events, and where the next one begins; null after the last. */
export interface EventPage {
  readonly events: readonly JournalledEvent[];
  readonly next: Place | null;
}

/**
 * Lists a page of events. Those received last come first; among pending ones those due last, among
 * dead, missing, superseded and ignored ones those that became so last. It looks at
 * `consoleBounds.searchedMax` candidates: a page may have fewer events, or none, and a next one.
 */
export async function listEvents(
  db: Executor,
  filter: EventFilter,
  { limit, after }: { limit: number; after?: Place | undefined },
): Promise<EventPage> {
  const events: JournalledEvent[] = [];
  let place = after;
  // Most pages are full after a few candidates. Others take more, in larger portions.
  for (const candidates of [2 * limit, ...portions]) {
    const part = await readPart<JournalledEvent>(db, filter, columns, {
      candidates,
      limit: limit - events.length,
      after: place,
    });
    events.push(...part.events);
    if (events.length === limit || part.end === null) return { events, next: part.end };
    place = part.end;
  }
  return { events, next: place ?? null };
}

/** Candidates of the second and later portions. */
const portions = [consoleBounds.searchedMax / 10, consoleBounds.searchedMax];

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

/** How many events match, and whether these are all. */
export interface CountedEvents {
  readonly events: number;
  readonly isAll: boolean;
}

/** Counts matching events, up to `most` + 1, among those that as many candidates lead to. */
export async function countEvents(
  db: Executor,
  filter: EventFilter,
  most: number,
): Promise<CountedEvents> {
  const { rows } = await db.execute<{ events: number; looked: number }>(sql`
    with ${foundEvents(filter, sql`${event.id}`, { candidates: most + 1, limit: most + 1 })}
    select
      (select count(*)::int from found) as events,
      (select count(*)::int from candidate) as looked`);
  const { events = 0, looked = 0 } = rows[0] ?? {};
  return { events, isAll: events <= most && looked <= most };
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

/** Counts the given events by outcome. */
export async function outcomesOf(
  db: Executor,
  ids: readonly string[],
): Promise<Partial<Record<EventOutcome, number>>> {
  const counts = await db
    .select({ outcome: journal.outcome, events: count() })
    .from(journal)
    .where(sql`${journal.id} = any(${array(ids, 'text')})`)
    .groupBy(journal.outcome)
    .orderBy(journal.outcome);
  return Object.fromEntries(counts.map(({ outcome, events }) => [outcome, events]));
}
