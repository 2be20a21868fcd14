import { and, count, eq, getViewSelectedFields, type SQL, sql } from 'drizzle-orm';
import type { EventKind } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { events, journal } from '../schema/metersync.ts';
import { consoleBounds } from './bounds.ts';
import type { EventFilter } from './event-filter.ts';
import type { Place } from './event-place.ts';
import { findEvents } from './found-events.ts';

const { kind: _kind, payload, body, ...columns } = getViewSelectedFields(events);

const readEvents = async (db: Executor, which: SQL | undefined) =>
  await db.select(columns).from(events).where(which).orderBy(events.receivedAt, events.id);

/**
 * An event of the journal without its payload. Times are text with microseconds. `settledAt` is
 * when a read of its record settled the event, or when the event was given up.
 */
export type JournalledEvent = Awaited<ReturnType<typeof readEvents>>[number];

/**
 * An event with its signed payload: JSON as Postgres prints it, or bytes if they are not JSON that
 * Postgres can hold. Both are null once the payload was dropped.
 */
export type EventDetails = NonNullable<Awaited<ReturnType<typeof readEvent>>>;

/** A page of events, and the place where the next page begins; null on the last page. */
export interface EventPage {
  readonly events: readonly JournalledEvent[];
  readonly next: Place | null;
}

/**
 * Lists a page of events, last first: by receipt; pending events by when they are due; dead,
 * missing, superseded and ignored events by when they became so. It searches at most `searchedMax`
 * events, so a page may have fewer than `limit` events although there is a next page.
 */
export async function listEvents(
  db: Executor,
  filter: EventFilter,
  { limit, after }: { limit: number; after?: Place | undefined },
): Promise<EventPage> {
  const ids: string[] = [];
  let place = after;
  let next: Place | null = null;
  // Most pages are full after a few events; the others search further.
  for (const most of [2 * limit, consoleBounds.searchedMax]) {
    const found = await findEvents(db, filter, { most, limit: limit - ids.length, after: place });
    ids.push(...found.ids);
    next = found.next;
    if (ids.length === limit || next === null) break;
    place = next;
  }
  const page = await readEvents(db, isAmong(events.id, ids));
  return { events: page.sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id)), next };
}

/** The payload with indentation, unless nesting would make it larger than a few megabytes. */
const laidOut = sql<string | null>`(
        select case
            when octet_length(text) <= 100000
              and length(text) - length(translate(text, '[{', '')) <= 200 then jsonb_pretty(${payload})
            else text
          end
        from (select ${payload}::text as text offset 0) printed
      )`;

/** Reads an event with its signed payload, unless the payload was dropped. */
export async function readEvent(db: Executor, id: string) {
  const [event] = await db
    .select({ ...columns, payload: laidOut, body })
    .from(events)
    .where(eq(events.id, id));
  return event;
}

/** How many matching events were counted, and whether these are all. */
export type CountedEvents = Awaited<ReturnType<typeof countEvents>>;

/** Counts matching events up to `most` + 1, among the first `most` + 1 events of their lists. */
export async function countEvents(db: Executor, filter: EventFilter, most: number) {
  const { ids, next } = await findEvents(db, filter, { most: most + 1, limit: most + 1 });
  return { events: ids.length, isAll: next === null };
}

/** Reads all events of a record, oldest first. */
export async function eventsOfRecord(
  db: Executor,
  kind: Exclude<EventKind, 'ignored'>,
  recordId: string,
): Promise<JournalledEvent[]> {
  return await readEvents(db, and(eq(events.recordId, recordId), eq(events.kind, kind)));
}

/** Counts the given events by outcome. */
export async function outcomesOf(
  db: Executor,
  ids: readonly string[],
): Promise<Partial<Record<EventOutcome, number>>> {
  const counts = await db
    .select({ outcome: journal.outcome, events: count() })
    .from(journal)
    .where(isAmong(journal.id, ids))
    .groupBy(journal.outcome)
    .orderBy(journal.outcome);
  return Object.fromEntries(counts.map(({ outcome, events }) => [outcome, events]));
}
