import { and, desc, eq, getViewSelectedFields, isNotNull, type SQL, sql } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { companyEventKinds, recordEventKinds } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isPending } from '../events/queue.ts';
import { events, gates, journal } from '../schema/metersync.ts';
import { consoleBounds } from './bounds.ts';
import { type EventFilter, matching } from './event-filter.ts';
import type { Place } from './event-place.ts';

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

const { payload: _payload, body: _body, ...columns } = getViewSelectedFields(events);

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
