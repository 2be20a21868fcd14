import {
  and,
  count,
  desc,
  eq,
  getViewSelectedFields,
  isNotNull,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import {
  companyEventKinds,
  type DeliveredEvent,
  type EventKind,
  recordEventKinds,
} from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isPending } from '../queue/queue.ts';
import { eventPayloads, events, gates, journal } from '../schema/metersync.ts';
import { consoleBounds } from './bounds.ts';

/** Selects events; an absent bound selects all. Times are ISO 8601, by the receiver's clock. */
export interface EventFilter {
  readonly ids?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly outcome?: EventOutcome | undefined;
  readonly recordId?: string | undefined;
  /** Company that the event names. */
  readonly companyId?: string | undefined;
  /** Only pending events of the company's connections and documents that wait to be read. */
  readonly queueOf?: string | undefined;
  readonly code?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Only events that are not applied. */
  readonly unapplied?: boolean | undefined;
}

type Columns = 'id' | 'type' | 'outcome' | 'recordId' | 'companyId' | 'errorCode' | 'receivedAt';

/** The condition that an event matches a filter. Absent bounds are not part of it. */
export function matching(
  event: Readonly<Record<Columns, SQLWrapper>>,
  filter: EventFilter,
): SQL | undefined {
  const { ids, type, outcome, recordId, companyId, code, since, until, unapplied } = filter;
  return and(
    ids && isAmong(event.id, ids),
    given(type, (value) => sql`${event.type} = ${value}`),
    given(outcome, (value) => sql`${event.outcome} = ${value}`),
    given(recordId, (value) => sql`${event.recordId} = ${value}`),
    given(companyId, (value) => sql`${event.companyId} = ${value}::uuid`),
    given(code, (value) => sql`${event.errorCode} = ${value}`),
    given(since, (value) => sql`${event.receivedAt} >= ${value}::timestamptz`),
    given(until, (value) => sql`${event.receivedAt} < ${value}::timestamptz`),
    unapplied ? sql`${event.outcome} <> 'applied'` : undefined,
  );
}

/** Returns the bound for a value if the value is given. An empty text counts as given. */
const given = (value: string | undefined, bound: (value: string) => SQL): SQL | undefined =>
  value === undefined ? undefined : bound(value);

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
    when octet_length(text) <= 100000 and length(text) - length(translate(text, '[{', '')) <= 200
      then jsonb_pretty(${payload})
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

/** Where a search begins, and after how many rows of an index it ends. */
interface Search {
  readonly after?: Place | undefined;
  readonly most: number;
}

/** Lists events by one of their times, last first. */
function byTime(
  db: Executor,
  time: 'receivedAt' | 'asideAt' | 'dueAt',
  which: SQL | undefined,
  { after, most }: Search,
  from: typeof journal = journal,
) {
  const { id, [time]: at } = from;
  const further = after && sql`(${at}, ${id}) < (${after.at}::timestamptz, ${after.id})`;
  return db
    .select({ at: sql<string>`${at}`.as('at'), id: sql<string>`${id}`.as('event_id') })
    .from(from)
    .where(and(which, further))
    .orderBy(desc(at), desc(id))
    .limit(most)
    .$dynamic();
}

/** Lists events behind the gates that are closed for a failure, by the time when they are due. */
function behindGates(db: Executor, code: string, search: Search) {
  const { after, most } = search;
  const { id, dueAt, queue, errorCode } = journal;
  const further = after && sql`(${dueAt}, ${id}) < (${after.at}::timestamptz, ${after.id})`;
  const ofGate = db
    .select({ id, dueAt })
    .from(journal)
    .where(and(eq(queue, gates.scope), sql`${errorCode} is distinct from ${code}`, further))
    .orderBy(desc(dueAt), desc(id))
    .limit(most)
    .as('of_gate');
  const behind = db
    .select({ id: ofGate.id, dueAt: ofGate.dueAt })
    .from(gates)
    .crossJoinLateral(ofGate)
    .where(eq(gates.code, code))
    .as('behind');
  return byTime(db, 'dueAt', undefined, search, behind as unknown as typeof journal);
}

/** Lists a few events by their receipt. Postgres looks them up and sorts them, whatever it expects. */
function byLookUp(db: Executor, which: SQL, search: Search) {
  const few = db.select().from(journal).where(which).offset(literal(0)).as('few');
  return byTime(db, 'receivedAt', undefined, search, few as unknown as typeof journal);
}

/**
 * The lists that have all events that a filter selects, each in the order of an index. A list uses
 * only a part of the filter.
 */
function listsOf(db: Executor, filter: EventFilter, search: Search) {
  const { ids, recordId, queueOf, companyId, outcome, code, since, until } = filter;
  const due = (which: SQL | undefined) => byTime(db, 'dueAt', which, search);
  const aside = (outcome: EventOutcome) =>
    byTime(db, 'asideAt', eq(journal.aside, outcome), search);
  if (ids !== undefined) return [byLookUp(db, isAmong(journal.id, ids), search)];
  if (recordId !== undefined) return [byLookUp(db, eq(journal.recordId, recordId), search)];
  if (queueOf !== undefined)
    return companyEventKinds.map((kind) => due(eq(journal.queue, `${kind}/${queueOf}`)));
  if (companyId === undefined) {
    const failed =
      code === undefined
        ? undefined
        : [due(and(eq(journal.errorCode, code), isPending)), behindGates(db, code, search)];
    if (outcome === 'pending')
      return failed
        ? failed
        : recordEventKinds.map((kind) =>
            due(and(eq(journal.kind, kind), isNotNull(journal.dueAt))),
          );
    if (outcome !== undefined && outcome !== 'applied') return [aside(outcome)];
    if (outcome === undefined && failed) return [...failed, aside('dead'), aside('missing')];
  }
  return [byTime(db, 'receivedAt', matching(journal, { companyId, since, until }), search)];
}

/**
 * Finds up to `limit` events that a filter selects, in the order of `listEvents`, among the first
 * `most` events of its lists. `next` is the place where the search goes on, and null at the end.
 */
export async function findEvents(
  db: Executor,
  filter: EventFilter,
  { limit, ...search }: Search & { readonly limit: number },
): Promise<{ readonly ids: readonly string[]; readonly next: Place | null }> {
  const [first, second, ...more] = listsOf(db, filter, search);
  if (first === undefined) throw new Error('no list has the events');
  const lastFirst = [desc(sql`at`), desc(sql`event_id`)];
  const listed = (
    second === undefined
      ? first
      : unionAll(first, second, ...more)
          .orderBy(...lastFirst)
          .limit(search.most)
  ).as('listed');
  const { at, id } = listed;
  const order = [desc(at), desc(id)];
  const event = db
    .select(columns)
    .from(events)
    .where(eq(events.id, id))
    .offset(literal(0))
    .as('event');
  const places = await db
    .select({ at, id })
    .from(listed)
    .crossJoinLateral(event)
    .where(matching(event, filter))
    .orderBy(...order)
    .limit(limit);
  const ids = places.map((place) => place.id);
  if (places.length === limit) return { ids, next: places.at(-1) ?? null };
  const [end] = await db
    .select({ at, id })
    .from(listed)
    .orderBy(...order)
    .offset(search.most - 1)
    .limit(1);
  return { ids, next: end ?? null };
}

/** Finds all events that a filter selects; one statement finds up to `most` of them. */
export async function findAllEvents(
  db: Executor,
  filter: EventFilter,
  most: number = consoleBounds.searchedMax,
): Promise<string[]> {
  // An event that becomes due at another time meanwhile may be listed twice.
  const found = new Set<string>();
  let after: Place | undefined;
  do {
    const { ids, next } = await findEvents(db, filter, { most, limit: most, after });
    for (const id of ids) found.add(id);
    after = next ?? undefined;
  } while (after !== undefined);
  return [...found];
}

/** A kept event. */
export interface KeptEvent {
  readonly id: string;
  readonly outcome: EventOutcome;
  /** How it was delivered; undefined once its payload was dropped. */
  readonly delivered: DeliveredEvent | undefined;
}

/** Reads kept events by their ids, to record them again. */
export async function readKept(db: Executor, ids: readonly string[]): Promise<KeptEvent[]> {
  const { id, outcome, receivedAt } = journal;
  const { payload, body } = eventPayloads;
  const kept: KeptEvent[] = [];
  for (let from = 0; from < ids.length; from += batches.payloadsRead) {
    const rows = await db
      .select({
        id,
        outcome,
        timestamp: sql<number>`floor(extract(epoch from ${receivedAt}))::float8`,
        receivedAt: sql<string>`to_char(${receivedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
        payload: sql<string | null>`${payload}::text`,
        body,
      })
      .from(journal)
      .leftJoin(eventPayloads, eq(eventPayloads.id, id))
      .where(isAmong(id, ids.slice(from, from + batches.payloadsRead)));
    for (const { payload, body, outcome, ...event } of rows) {
      const text = body?.toString('utf8') ?? payload ?? undefined;
      const delivered = text === undefined ? undefined : { ...event, body: text };
      kept.push({ id: event.id, outcome, delivered });
    }
  }
  return kept;
}

/** A place in a list of events: after event `id`, which the list has at this time. */
export interface Place {
  /** A time as Postgres prints it, with microseconds. */
  readonly at: string;
  readonly id: string;
}

/** Encodes a place for URLs and commands. */
export const placeText = ({ at, id }: Place): string =>
  Buffer.from(JSON.stringify([at, id])).toString('base64url');

const time = /^(-?infinity|\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2})$/;

/** Decodes a place that `placeText` encoded; undefined for any other text. */
export function readPlace(text: string): Place | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts) || parts.length !== 2) return undefined;
  const [at, id] = parts.map((part) =>
    typeof part === 'string' && !part.includes('\0') ? part : undefined,
  );
  if (at === undefined || id === undefined || !time.test(at)) return undefined;
  return { at, id };
}
