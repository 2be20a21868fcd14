import {
  and,
  asc,
  desc,
  eq,
  getViewSelectedFields,
  gte,
  isNull,
  lt,
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
import { type EventFilter, matching } from './event-filter.ts';
import type { Order, Place } from './event-place.ts';

/** How many candidates are looked at from a place on, and how many events are taken; null for all. */
export interface Portion {
  readonly candidates: number;
  readonly limit: number | null;
  readonly after?: Place | undefined;
  readonly order?: Order;
}

/** How an order goes on from a place, from beyond it, and is spelled. */
const orders = {
  'last first': { from: sql`<=`, beyond: sql`<`, by: desc, back: asc },
  'first first': { from: sql`>=`, beyond: sql`>`, by: asc, back: desc },
} as const;

/**
 * Rows that lead to the events that a filter may select: the events themselves, or records that wait. An
 * index has their order, so that a statement reads as many as it asks for, whatever the planner guesses.
 * `waits` is the kind of a record that waits, and null for an event.
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

/** Events that were neither applied nor wait, by when they became so. No parameter, for a partial index. */
const aside = (outcome: EventOutcome): Source => ({
  ...received,
  at: journal.asideAt,
  which: sql`${journal.aside} = ${sql.raw(`'${outcome}'`)}`,
});

/** Few events that are looked up, and then sorted. */
function chosen(db: Executor, which: SQL): Source {
  const few = db.select().from(journal).where(which).offset(literal(0)).as('chosen');
  return { ...received, table: few, at: few.receivedAt, key: few.id };
}

/** Records that wait, by when they are due. A range of readings is named by its event. */
const waiting = (which: SQL): Source => ({
  table: staleRecords,
  which,
  at: staleRecords.dueAt,
  key: staleRecords.recordId,
  waits: sql`case when kind <> 'interval' then kind end`,
  since: staleRecords.since,
});

/**
 * Chooses what leads to the selected events, in the order in which they are listed: pending ones by when
 * their record is due, others that were not applied by when they became so, and all else by receipt. It
 * uses only one bound of the filter.
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
  const which = and(
    companyId === undefined ? undefined : eq(journal.companyId, companyId),
    since === undefined ? undefined : gte(journal.receivedAt, since),
    until === undefined ? undefined : lt(journal.receivedAt, until),
  );
  return [{ ...received, which }];
}

/** Selects the first rows `(at, key, waits, since)` of a source from a place on. */
function rowsOf(db: Executor, { table, which, at, key, waits, since }: Source, portion: Portion) {
  const { candidates, after, order = 'last first' } = portion;
  const { from, by } = orders[order];
  // The candidate at the place may have further events.
  const goesOn = after && sql`(${at}, ${key}) ${from} (${after.at}::timestamptz, ${after.key})`;
  return db
    .select({
      at: sql<string>`${at}`.as('at'),
      key: sql<string>`${key}`.as('key'),
      waits: sql<string | null>`${waits}`.as('waits'),
      since: sql<string | null>`${since}`.as('since'),
    })
    .from(table as typeof journal)
    .where(and(which, goesOn))
    .orderBy(by(at), by(key))
    .limit(candidates);
}

const { payload: _payload, body: _body, ...columns } = getViewSelectedFields(events);

/**
 * Steps `candidate` and `found` of a statement: at most `limit` selected events among those that so
 * many candidates lead to, after a place. Each candidate takes some look-ups by an index, and nothing
 * else does.
 */
export function foundEvents(db: Executor, filter: EventFilter, portion: Portion) {
  const { candidates, limit, after, order = 'last first' } = portion;
  const { beyond, by } = orders[order];
  const [first, second, ...more] = sourcesOf(db, filter).map((source) =>
    rowsOf(db, source, portion),
  );
  if (first === undefined) throw new Error('no source leads to events');
  const rows =
    second === undefined
      ? first
      : unionAll(first, second, ...more)
          .orderBy(by(sql`at`), by(sql`key`))
          .limit(candidates);
  const candidate = db.$with('candidate').as(rows);
  const itself = db
    .select(columns)
    .from(events)
    .where(and(isNull(candidate.waits), eq(events.id, candidate.key)))
    .offset(literal(0));
  const ofRecord = db
    .select(columns)
    .from(events)
    .where(
      and(
        eq(events.recordId, candidate.key),
        eq(events.kind, candidate.waits),
        gte(events.recordedAt, candidate.since),
        eq(events.outcome, 'pending'),
      ),
    )
    .offset(literal(0));
  const event = unionAll(itself, ofRecord).as('event');
  const later =
    after &&
    sql`(${candidate.at}, ${candidate.key}, ${event.id})
      ${beyond} (${after.at}::timestamptz, ${after.key}, ${after.id})`;
  const found = db
    .select({
      at: sql<string>`${candidate.at}`.as('at'),
      key: sql<string>`${candidate.key}`.as('key'),
      id: event.id,
    })
    .from(candidate)
    .crossJoinLateral(event)
    .where(and(matching(event, filter), later))
    .orderBy(by(candidate.at), by(candidate.key), by(event.id))
    .$dynamic();
  return { candidate, found: db.$with('found').as(limit === null ? found : found.limit(limit)) };
}

/** Events that were found, in order, and the place where the next ones begin; null if nothing is left. */
export interface FoundPart {
  readonly ids: readonly string[];
  readonly end: Place | null;
}

/** Finds a portion of the events that a filter selects. */
export async function readPart(
  db: Executor,
  filter: EventFilter,
  portion: Portion,
): Promise<FoundPart> {
  const { by, back } = orders[portion.order ?? 'last first'];
  const { candidate, found } = foundEvents(db, filter, portion);
  const looked = db
    .select({
      looked: sql<number>`(count(*) over ())::int`.as('looked'),
      lastAt: sql<string>`${candidate.at}`.as('last_at'),
      lastKey: sql<string>`${candidate.key}`.as('last_key'),
    })
    .from(candidate)
    .orderBy(back(candidate.at), back(candidate.key))
    .limit(1)
    .as('looked');
  const rows = await db
    .with(candidate, found)
    .select({
      looked: looked.looked,
      last: { at: looked.lastAt, key: looked.lastKey },
      found: { at: found.at, key: found.key, id: found.id },
    })
    .from(looked)
    .leftJoin(found, sql`true`)
    .orderBy(by(found.at), by(found.key), by(found.id));
  const places = rows.flatMap((row): Place[] => (row.found?.id ? [row.found] : []));
  const ids = places.map(({ id }) => id);
  const [first] = rows;
  const last = places.at(-1);
  if (last !== undefined && places.length === portion.limit) return { ids, end: last };
  if (first === undefined || first.looked < portion.candidates) return { ids, end: null };
  const isOfLast = last?.at === first.last.at && last.key === first.last.key;
  return { ids, end: isOfLast ? last : { ...first.last, id: '' } };
}

/** Puts what was read of events in the order of their ids. */
export function inOrder<Row extends { readonly id: string }>(
  ids: readonly string[],
  rows: readonly Row[],
): Row[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
