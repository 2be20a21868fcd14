import {
  and,
  desc,
  eq,
  getViewSelectedFields,
  gte,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { companyEventKinds, recordEventKinds } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong, literal, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { events, journal, staleRecords } from '../schema/metersync.ts';
import { type EventFilter, matching } from './event-filter.ts';
import type { Place } from './event-place.ts';

/** How many candidates to examine from a place on, and how many events to take; null for all. */
interface Portion {
  readonly candidates: number;
  readonly limit: number | null;
  readonly after?: Place | undefined;
}

/**
 * Rows that lead to events that a filter may select: the events, or records that wait. An index has
 * them in order, so that a statement reads only as many as it asks for. `waits` is the kind of a
 * record that waits, and null for an event.
 */
interface Source {
  readonly table: SQLWrapper;
  readonly which?: SQL | undefined;
  readonly at: SQLWrapper;
  readonly key: SQLWrapper;
  readonly waits: SQL;
  readonly since: SQLWrapper;
}

/** Events by when they were received. */
const received = {
  table: journal,
  at: journal.receivedAt,
  key: journal.id,
  waits: sql`null::text`,
  since: sql`null::timestamptz`,
};

/**
 * Events that are neither applied nor pending, by when they got their outcome. The outcome is not a
 * parameter, so that a partial index can be used.
 */
const aside = (outcome: EventOutcome): Source => ({
  ...received,
  at: journal.asideAt,
  which: sql`${journal.aside} = ${sql.raw(`'${outcome}'`)}`,
});

/** A few events, which are looked up and then sorted. */
function chosen(db: Executor, which: SQL): Source {
  const few = db.select().from(journal).where(which).offset(literal(0)).as('chosen');
  return { ...received, table: few, at: few.receivedAt, key: few.id };
}

/** Records that wait, by when they are due. A range of readings has the id of its event. */
const waiting = (which: SQL): Source => ({
  table: staleRecords,
  which,
  at: staleRecords.dueAt,
  key: staleRecords.recordId,
  waits: sql`case when kind <> 'interval' then kind end`,
  since: staleRecords.since,
});

/**
 * Chooses the sources that lead to the selected events, in the order of `listEvents`. A source uses
 * only a part of the filter; `placesOf` applies all of it.
 */
function sourcesOf(db: Executor, filter: EventFilter): readonly Source[] {
  const { ids, recordId, queueOf, companyId, outcome, code, since, until } = filter;
  if (ids !== undefined) return [chosen(db, isAmong(journal.id, ids))];
  if (recordId !== undefined) return [chosen(db, eq(journal.recordId, recordId))];
  if (queueOf !== undefined)
    return companyEventKinds.map((kind) => waiting(eq(staleRecords.queue, `${kind}/${queueOf}`)));
  const pending =
    code === undefined
      ? recordEventKinds.map((kind) => waiting(eq(staleRecords.kind, kind)))
      : [waiting(eq(staleRecords.errorCode, code))];
  if (companyId === undefined) {
    if (outcome === 'pending') return pending;
    if (outcome !== undefined && outcome !== 'applied') return [aside(outcome)];
    if (outcome === undefined && code !== undefined)
      return [...pending, aside('dead'), aside('missing')];
  }
  return [{ ...received, which: matching(journal, { companyId, since, until }) }];
}

/** Selects the last rows `(at, key, waits, since)` of a source, starting at a place. */
function rowsOf(db: Executor, { table, which, at, key, waits, since }: Source, portion: Portion) {
  const { candidates, after } = portion;
  // The candidate at the place may have further events.
  const goesOn = after && sql`(${at}, ${key}) <= (${after.at}::timestamptz, ${after.key})`;
  return db
    .select({
      at: sql<string>`${at}`.as('at'),
      key: sql<string>`${key}`.as('key'),
      waits: sql<string | null>`${waits}`.as('waits'),
      since: sql<string | null>`${since}`.as('since'),
    })
    .from(table as typeof journal)
    .where(and(which, goesOn))
    .orderBy(desc(at), desc(key))
    .limit(candidates);
}

const { payload: _payload, body: _body, ...columns } = getViewSelectedFields(events);

/**
 * Finds the last events after a place that a filter selects, among the events to which `candidates`
 * candidates lead. Each candidate takes a few index look-ups; there is no other cost. `end` is the
 * place where the next events begin, or null if nothing is left.
 */
export async function findEvents(
  db: Executor,
  filter: EventFilter,
  portion: Portion,
): Promise<{ readonly ids: readonly string[]; readonly end: Place | null }> {
  const { candidates, limit, after } = portion;
  const [first, second, ...more] = sourcesOf(db, filter).map((source) =>
    rowsOf(db, source, portion),
  );
  if (first === undefined) throw new Error('no source leads to events');
  const rows = await (second === undefined
    ? first
    : unionAll(first, second, ...more)
        .orderBy(desc(sql`at`), desc(sql`key`))
        .limit(candidates));
  const places = await placesOf(db, filter, rows, { limit, after });
  const ids = places.map(({ id }) => id);
  const [last, candidate] = [places.at(-1), rows.at(-1)];
  if (last !== undefined && places.length === limit) return { ids, end: last };
  if (candidate === undefined || rows.length < candidates) return { ids, end: null };
  const isOfLast = last?.at === candidate.at && last.key === candidate.key;
  return { ids, end: isOfLast ? last : { at: candidate.at, key: candidate.key, id: '' } };
}

/** Finds the events of candidates that a filter selects, in the order of the list. */
async function placesOf(
  db: Executor,
  filter: EventFilter,
  candidates: Awaited<ReturnType<typeof rowsOf>>,
  { limit, after }: Pick<Portion, 'limit' | 'after'>,
): Promise<Place[]> {
  const candidate = unnested('candidate', candidates, [
    ['at', 'timestamptz', (row) => row.at],
    ['key', 'text', (row) => row.key],
    ['waits', 'text', (row) => row.waits],
    ['since', 'timestamptz', (row) => row.since],
  ]);
  const itself = db
    .select(columns)
    .from(events)
    .where(and(sql`candidate.waits is null`, eq(events.id, sql`candidate.key`)))
    .offset(literal(0));
  const ofRecord = db
    .select(columns)
    .from(events)
    .where(
      and(
        eq(events.recordId, sql`candidate.key`),
        eq(events.kind, sql`candidate.waits`),
        gte(events.recordedAt, sql`candidate.since`),
        eq(events.outcome, 'pending'),
      ),
    )
    .offset(literal(0));
  const event = unionAll(itself, ofRecord).as('event');
  const later =
    after &&
    sql`(candidate.at, candidate.key, ${event.id})
      < (${after.at}::timestamptz, ${after.key}, ${after.id})`;
  const found = db
    .select({ at: sql<string>`candidate.at`, key: sql<string>`candidate.key`, id: event.id })
    .from(candidate)
    .crossJoinLateral(event)
    .where(and(matching(event, filter), later))
    .orderBy(sql`candidate.at desc, candidate.key desc`, desc(event.id))
    .$dynamic();
  return await (limit === null ? found : found.limit(limit));
}
