import { and, count, eq, getViewSelectedFields, SQL, sql } from 'drizzle-orm';
import {
  companyEventKinds,
  type DeliveredEvent,
  type EventKind,
  recordEventKinds,
} from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong, isBeyond } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
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

/** The condition that a row of a table or view of events matches a filter. Absent bounds are not part of it. */
function matching(event: string, filter: EventFilter): SQL {
  const of = sql.raw(event);
  const { ids, type, outcome, recordId, companyId, code, since, until, unapplied } = filter;
  const bounds = [
    ids && isAmong(sql`${of}.id`, ids),
    type !== undefined && sql`${of}.type = ${type}`,
    outcome !== undefined && sql`${of}.outcome = ${outcome}`,
    recordId !== undefined && sql`${of}.record_id = ${recordId}`,
    companyId !== undefined && sql`${of}.company_id = ${companyId}::uuid`,
    code !== undefined && sql`${of}.error_code = ${code}`,
    since !== undefined && sql`${of}.received_at >= ${since}::timestamptz`,
    until !== undefined && sql`${of}.received_at < ${until}::timestamptz`,
    unapplied && sql`${of}.outcome <> 'applied'`,
  ].filter((bound) => bound instanceof SQL);
  return bounds.length === 0 ? sql`true` : sql.join(bounds, sql` and `);
}

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
interface EventPage {
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
  if (ids.length === 0) return { events: [], next };
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

/** A list of events in the order of an index, last first: a part of the journal, and the time that orders it. */
interface List {
  readonly by: 'received_at' | 'aside_at' | 'due_at';
  readonly which: SQL;
  /** What is listed, if it is not the journal itself. */
  readonly from?: SQL;
}

/** Selects the time and the id of the events of a list that a search reads. */
function listed({ by, which, from = sql`${journal} e` }: List, { after, most }: Search): SQL {
  const at = sql`e.${sql.raw(by)}`;
  const isFurther = isBeyond([at, sql`e.id`], 'descending', after && [after.at, after.id]);
  return sql`(
      select ${at} as at, e.id
      from ${from}
      where ${which} and ${isFurther ?? sql`true`}
      order by ${at} desc, e.id desc
      limit ${most}
    )`;
}

/** Lists events behind the gates that are closed for a failure, by the time when they are due. */
function behindGates(code: string, search: Search): List {
  const ofGate: List = {
    by: 'due_at',
    which: sql`e.queue = gate.scope and e.error_code is distinct from ${code}`,
  };
  const from = sql`(
        select of_gate.at as due_at, of_gate.id
        from ${gates} gate
          cross join lateral ${listed(ofGate, search)} of_gate
        where gate.code = ${code}
      ) e`;
  return { by: 'due_at', which: sql`true`, from };
}

/** Lists a few events by their receipt. Postgres looks them up and sorts them, whatever it expects. */
function lookedUp(which: SQL): List {
  const from = sql`(select * from ${journal} e where ${which} offset 0) e`;
  return { by: 'received_at', which: sql`true`, from };
}

/**
 * The lists that have all events that a filter selects, each in the order of an index. A list uses
 * only a part of the filter. Outcomes are not parameters, so that partial indexes can be used.
 */
function listsOf(filter: EventFilter, search: Search): List[] {
  const { ids, recordId, queueOf, companyId, outcome, code, since, until } = filter;
  if (ids !== undefined) return [lookedUp(isAmong(sql`e.id`, ids))];
  if (recordId !== undefined) return [lookedUp(sql`e.record_id = ${recordId}`)];
  if (queueOf !== undefined)
    return companyEventKinds.map((kind) => due(sql`e.queue = ${`${kind}/${queueOf}`}`));
  if (companyId === undefined) {
    const failed =
      code === undefined
        ? undefined
        : [due(sql`e.error_code = ${code} and e.outcome = 'pending'`), behindGates(code, search)];
    if (outcome === 'pending')
      return (
        failed ??
        recordEventKinds.map((kind) => due(sql`e.kind = ${kind} and e.due_at is not null`))
      );
    if (outcome !== undefined && outcome !== 'applied') return [aside(outcome)];
    if (outcome === undefined && failed) return [...failed, aside('dead'), aside('missing')];
  }
  return [{ by: 'received_at', which: matching('e', { companyId, since, until }) }];
}

const due = (which: SQL): List => ({ by: 'due_at', which });
const aside = (outcome: EventOutcome): List => ({
  by: 'aside_at',
  which: sql`e.aside = ${outcome}`,
});

/**
 * Finds up to `limit` events that a filter selects, in the order of `listEvents`, among the first
 * `most` events of its lists. `next` is the place where the search goes on, and null at the end.
 */
export async function findEvents(
  db: Executor,
  filter: EventFilter,
  { limit, ...search }: Search & { readonly limit: number },
): Promise<{ readonly ids: readonly string[]; readonly next: Place | null }> {
  const lists = listsOf(filter, search).map((list) => listed(list, search));
  const { rows } = await db.execute<{ at: string; id: string; isFound: boolean }>(sql`
    with listed as materialized (
      select * from (${sql.join(lists, sql` union all `)}) lists
      order by at desc, id desc
      limit ${search.most}
    ), found as materialized (
      select l.at, l.id
      from listed l
        -- Without the offset all events are read to join a few.
        cross join lateral (select * from ${events} where id = l.id offset 0) event
      where ${matching('event', filter)}
      order by l.at desc, l.id desc
      limit ${limit}
    )
    select at, id, true as "isFound"
    from found
    union all
    (select at, id, false from listed order by at desc, id desc offset ${search.most - 1})
    order by "isFound" desc, at desc, id desc`);
  const places = rows.filter(({ isFound }) => isFound);
  const end = rows.find(({ isFound }) => !isFound) ?? null;
  const last = places.length === limit ? places.at(-1) : end;
  return { ids: places.map(({ id }) => id), next: last ? { at: last.at, id: last.id } : null };
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
interface KeptEvent {
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
