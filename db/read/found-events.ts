import {
  and,
  desc,
  eq,
  getViewSelectedFields,
  gte,
  ne,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { companyEventKinds, recordEventKinds } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { events, journal, staleRecords } from '../schema/metersync.ts';
import { consoleBounds } from './bounds.ts';
import { type EventFilter, matching } from './event-filter.ts';
import type { Place } from './event-place.ts';

/** Where a search begins, and after how many rows of an index it ends. */
interface Search {
  readonly after?: Place | undefined;
  readonly most: number;
}

const placeOf = (at: SQLWrapper, key: SQLWrapper, id: SQLWrapper) => ({
  at: sql<string>`${at}`.as('at'),
  key: sql<string>`${key}`.as('key'),
  id: sql<string>`${id}`.as('event_id'),
});

/** Lists events by one of their times, last first. */
function byTime(
  db: Executor,
  time: 'receivedAt' | 'asideAt',
  which: SQL | undefined,
  { after, most }: Search,
  from: typeof journal = journal,
) {
  const { id, [time]: at } = from;
  const further = after && sql`(${at}, ${id}) < (${after.at}::timestamptz, ${after.id})`;
  return db
    .select(placeOf(at, sql`''`, id))
    .from(from)
    .where(and(which, further))
    .orderBy(desc(at), desc(id))
    .limit(most)
    .$dynamic();
}

/**
 * Lists pending events by when their records are due, last first. A record without further events
 * has a row with the id '', so that the rows end only where the records end.
 */
function byDue(db: Executor, which: SQL, { after, most }: Search): ReturnType<typeof byTime> {
  const { kind, recordId, since, dueAt } = staleRecords;
  // The record at the place may have further events, unless the place is its end.
  const onward =
    after &&
    sql`(${dueAt}, ${recordId}) ${sql.raw(after.id === '' ? '<' : '<=')} (${after.at}::timestamptz, ${after.key})`;
  const record = db
    .select({ kind, recordId, since, dueAt })
    .from(staleRecords)
    .where(and(which, onward))
    .orderBy(desc(dueAt), desc(recordId))
    .limit(most)
    .as('record');
  const ofRecord = and(
    ne(record.kind, 'interval'),
    eq(journal.recordId, record.recordId),
    eq(journal.kind, record.kind),
    gte(journal.recordedAt, record.since),
    eq(journal.outcome, 'pending'),
  );
  const ofRange = and(eq(record.kind, 'interval'), eq(journal.id, record.recordId));
  const event = unionAll(
    db.select({ id: journal.id }).from(journal).where(ofRecord),
    db.select({ id: journal.id }).from(journal).where(ofRange),
  )
    .offset(literal(0))
    .as('event');
  const further =
    after &&
    sql`(${record.dueAt}, ${record.recordId}, ${event.id})
      < (${after.at}::timestamptz, ${after.key}, ${after.id})`;
  const id = sql`coalesce(${event.id}, '')`;
  const rows = db
    .select(placeOf(record.dueAt, record.recordId, id))
    .from(record)
    .leftJoinLateral(event, further ?? sql`true`)
    .orderBy(desc(record.dueAt), desc(record.recordId), desc(id))
    .limit(most)
    .$dynamic();
  // The types of Drizzle do not unite selects of several tables, although the columns are the same.
  return rows as unknown as ReturnType<typeof byTime>;
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
  const due = (which: SQL) => byDue(db, which, search);
  const aside = (outcome: EventOutcome) =>
    byTime(db, 'asideAt', eq(journal.aside, outcome), search);
  if (ids !== undefined) return [byLookUp(db, isAmong(journal.id, ids), search)];
  if (recordId !== undefined) return [byLookUp(db, eq(journal.recordId, recordId), search)];
  if (queueOf !== undefined)
    return companyEventKinds.map((kind) => due(eq(staleRecords.queue, `${kind}/${queueOf}`)));
  if (companyId === undefined) {
    const failed = code === undefined ? undefined : due(eq(staleRecords.errorCode, code));
    if (outcome === 'pending')
      return failed ? [failed] : recordEventKinds.map((kind) => due(eq(staleRecords.kind, kind)));
    if (outcome !== undefined && outcome !== 'applied') return [aside(outcome)];
    if (outcome === undefined && failed) return [failed, aside('dead'), aside('missing')];
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
  const lastFirst = [desc(sql`at`), desc(sql`key`), desc(sql`event_id`)];
  const listed = (
    second === undefined
      ? first
      : unionAll(first, second, ...more)
          .orderBy(...lastFirst)
          .limit(search.most)
  ).as('listed');
  const { at, key, id } = listed;
  const order = [desc(at), desc(key), desc(id)];
  const event = db
    .select(columns)
    .from(events)
    .where(eq(events.id, id))
    .offset(literal(0))
    .as('event');
  const places = await db
    .select({ at, key, id })
    .from(listed)
    .crossJoinLateral(event)
    .where(matching(event, filter))
    .orderBy(...order)
    .limit(limit);
  const ids = places.map((place) => place.id);
  if (places.length === limit) return { ids, next: places.at(-1) ?? null };
  const [end] = await db
    .select({ at, key, id })
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
  // A record that becomes due at another time meanwhile may be listed twice.
  const found = new Set<string>();
  let after: Place | undefined;
  do {
    const { ids, next } = await findEvents(db, filter, { most, limit: most, after });
    for (const id of ids) found.add(id);
    after = next ?? undefined;
  } while (after !== undefined);
  return [...found];
}
