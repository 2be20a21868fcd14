import { type SQL, sql } from 'drizzle-orm';
import { companyEventKinds, recordEventKinds } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import { journal, settlements, staleRecords } from '../schema/metersync.ts';
import type { EventFilter } from './event-filter.ts';
import type { Order, Place } from './event-place.ts';

/**
 * What leads to the events that a filter may select: events, or stale records and settlements with
 * the events recorded in their time. They are ordered by `at` and `key`. An index has this order, so
 * that a statement reads as many as it asks for, whatever the planner guesses.
 * Columns: at, key, is_event, kind, since, until, outcome, settled_at; the last two restrict nothing
 * where they are null.
 */
export type Candidates = (some: Some) => SQL;

/** As many candidates as `most`, from a place on. */
export interface Some {
  readonly most: number;
  readonly from: Place | undefined;
  readonly order: Order;
}

/** How an order goes on from a place, from beyond it, and is spelled. */
export const orders: Readonly<Record<Order, Readonly<Record<'from' | 'beyond' | 'by', SQL>>>> = {
  'last first': { from: sql`<=`, beyond: sql`<`, by: sql` desc` },
  'first first': { from: sql`>=`, beyond: sql`>`, by: sql`` },
};

/**
 * Chooses what leads to the selected events, in the order in which they are listed. Pending ones are
 * ordered by when their record is due, settled and dead ones by when they became so. All others have
 * the order of receipt. It uses one bound of the filter alone.
 */
export function candidatesOf(filter: EventFilter): Candidates {
  const { ids, recordId, queueOf, companyId, outcome, code } = filter;
  if (ids !== undefined) return chosen(sql`${journal.id} = any(${array(ids, 'text')})`);
  if (recordId !== undefined) return chosen(sql`${journal.recordId} = ${recordId}`);
  if (queueOf !== undefined)
    return firstOf(
      companyEventKinds.map((kind) =>
        waiting(sql`${staleRecords.queue} = ${`${kind}/${queueOf}`}`),
      ),
    );
  if (companyId !== undefined)
    return received(sql`${journal.companyId} = ${companyId}::uuid`, filter);
  const outcomes = outcome === undefined ? withFailure(code) : [outcome];
  const parts = outcomes.flatMap((one) => partsOf[one]?.(code) ?? []);
  return parts.length === 0 ? received(sql`true`, filter) : firstOf(parts);
}

/** The outcomes of events that have an error. */
const withFailure = (code: string | undefined): readonly EventOutcome[] =>
  code === undefined ? [] : ['pending', 'dead', 'missing'];

/** An outcome is no parameter, so that a partial index serves it. */
const literal = (outcome: EventOutcome): SQL => sql.raw(`'${outcome}'`);

type Parts = readonly Candidates[];

/** The candidates of each outcome but `applied`, which most events have. */
const partsOf: Readonly<Partial<Record<EventOutcome, (code: string | undefined) => Parts>>> = {
  pending: (code) =>
    code === undefined
      ? recordEventKinds.map((kind) => waiting(sql`${staleRecords.kind} = ${kind}`))
      : [waiting(sql`${staleRecords.errorCode} = ${code}`)],
  missing: () => [settled('missing')],
  superseded: () => [settled('superseded')],
  dead: () => [settled('dead'), arrived('dead')],
  ignored: () => [arrived('ignored')],
};

/** Continues at a place; the candidate there may have further events. */
const goesOn = (at: SQL, key: SQL, { from, order }: Some): SQL =>
  from === undefined
    ? sql``
    : sql`
          and (${at}, ${key}) ${orders[order].from} (${from.at}::timestamptz, ${from.key})`;

const inOrder = (at: SQL, key: SQL, { most, order }: Some): SQL => sql`
        order by ${at}${orders[order].by}, ${key}${orders[order].by}
        limit ${most}`;

/** Stale records, by when they are due. */
const waiting =
  (which: SQL): Candidates =>
  (some) => {
    const [at, key] = [sql`${staleRecords.dueAt}`, sql`${staleRecords.recordId}`];
    return sql`
        select
          ${at} as at,
          ${key} as key,
          ${staleRecords.kind} = 'interval' as is_event,
          ${staleRecords.kind},
          ${staleRecords.since},
          ${staleRecords.lastEventAt} as until,
          'pending' as outcome,
          null::timestamptz as settled_at
        from ${staleRecords}
        where ${which}${goesOn(at, key, some)}${inOrder(at, key, some)}`;
  };

/** Settlements. */
const settled =
  (outcome: EventOutcome): Candidates =>
  (some) => {
    const [at, key] = [sql`${settlements.settledAt}`, sql`${settlements.recordId}`];
    return sql`
        select
          ${at} as at,
          ${key} as key,
          ${settlements.kind} = 'interval' as is_event,
          ${settlements.kind},
          ${settlements.since},
          ${settlements.readAt} as until,
          ${settlements.outcome},
          ${at} as settled_at
        from ${settlements}
        where ${settlements.outcome} = ${literal(outcome)}${goesOn(at, key, some)}${inOrder(at, key, some)}`;
  };

const anyTime = sql`null::timestamptz as since,
          null::timestamptz as until,
          null as outcome,
          null::timestamptz as settled_at`;

/** An event as a candidate. */
const eventAt = (at: SQL): SQL => sql`
        select
          ${at} as at,
          id as key,
          true as is_event,
          kind,
          ${anyTime}`;

/** Events that arrived with an outcome. */
const arrived =
  (outcome: EventOutcome): Candidates =>
  (some) => {
    const [at, key] = [sql`${journal.recordedAt}`, sql`${journal.id}`];
    return sql`${eventAt(at)}
        from ${journal}
        where ${journal.arrivedAs} = ${literal(outcome)}${goesOn(at, key, some)}${inOrder(at, key, some)}`;
  };

/** Events in the order in which they were received. */
const received =
  (which: SQL, { since, until }: EventFilter): Candidates =>
  (some) => {
    const [at, key] = [sql`${journal.receivedAt}`, sql`${journal.id}`];
    const bounds = [
      since === undefined ? sql`` : sql` and ${at} >= ${since}::timestamptz`,
      until === undefined ? sql`` : sql` and ${at} < ${until}::timestamptz`,
    ];
    return sql`${eventAt(at)}
        from ${journal}
        where ${which}${sql.join(bounds)}${goesOn(at, key, some)}${inOrder(at, key, some)}`;
  };

/** Few events that are looked up, and then sorted. */
const chosen =
  (which: SQL): Candidates =>
  (some) => {
    const [at, key] = [sql`chosen.received_at`, sql`chosen.id`];
    return sql`${eventAt(at)}
        from (
          select ${journal.id}, ${journal.kind}, ${journal.receivedAt}
          from ${journal}
          where ${which}
          offset 0
        ) chosen
        where true${goesOn(at, key, some)}${inOrder(at, key, some)}`;
  };

/** The first ones of several. */
const firstOf =
  (parts: readonly Candidates[]): Candidates =>
  (some) => {
    const each = parts.map(
      (part) => sql`(${part(some)}
      )`,
    );
    return sql`
      select *
      from (
      ${sql.join(
        each,
        sql`
      union all
      `,
      )}
      ) parts${inOrder(sql`at`, sql`key`, some)}`;
  };
