import { type SQL, sql } from 'drizzle-orm';
import { companyEventKinds, recordEventKinds } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { events, journal, staleRecords } from '../schema/metersync.ts';
import { type EventFilter, event, matching } from './event-filter.ts';
import type { Order, Place } from './event-place.ts';

/** How many candidates are looked at from a place on, and how many events are taken; null for all. */
export interface Portion {
  readonly candidates: number;
  readonly limit: number | null;
  readonly after?: Place | undefined;
  readonly order?: Order;
}

/** How an order goes on from a place, from beyond it, and is spelled. */
const orders: Readonly<Record<Order, Readonly<Record<'from' | 'beyond' | 'by' | 'back', SQL>>>> = {
  'last first': { from: sql`<=`, beyond: sql`<`, by: sql` desc`, back: sql`` },
  'first first': { from: sql`>=`, beyond: sql`>`, by: sql``, back: sql` desc` },
};

/**
 * Rows of a table that lead to the events that a filter may select: the events themselves, or records
 * that wait. An index has their order, so that a statement reads as many as it asks for, whatever the
 * planner guesses. `waits` is the kind of a record that waits, and null for an event.
 */
interface Source {
  readonly table: SQL;
  readonly which: SQL;
  readonly at: SQL;
  readonly key: SQL;
  readonly waits: SQL;
  readonly since: SQL;
}

const anEvent = { key: sql`id`, waits: sql`null`, since: sql`null::timestamptz` } as const;

/** Events by when they were received. */
const received = (which: SQL): Source => ({
  ...anEvent,
  table: sql`${journal}`,
  which,
  at: sql`received_at`,
});

/** Events that were neither applied nor wait, by when they became so. No parameter, for a partial index. */
const aside = (outcome: EventOutcome): Source => ({
  ...anEvent,
  table: sql`${journal}`,
  which: sql.raw(`aside = '${outcome}'`),
  at: sql`aside_at`,
});

/** Few events that are looked up, and then sorted. */
const chosen = (which: SQL): Source => ({
  ...received(sql`true`),
  table: sql`(
          select ${journal.id}, ${journal.receivedAt}
          from ${journal}
          where ${which}
          offset 0
        ) chosen`,
});

/** Records that wait, by when they are due. A range of readings is named by its event. */
const waiting = (which: SQL): Source => ({
  table: sql`${staleRecords}`,
  which,
  at: sql`due_at`,
  key: sql`record_id`,
  waits: sql`case when kind <> 'interval' then kind end`,
  since: sql`since`,
});

/**
 * Chooses what leads to the selected events, in the order in which they are listed: pending ones by when
 * their record is due, others that were not applied by when they became so, and all else by receipt. It
 * uses one bound of the filter alone.
 */
function sourcesOf(filter: EventFilter): readonly Source[] {
  const { ids, recordId, queueOf, companyId, outcome, code, since, until } = filter;
  if (ids !== undefined) return [chosen(sql`${journal.id} = any(${array(ids, 'text')})`)];
  if (recordId !== undefined) return [chosen(sql`${journal.recordId} = ${recordId}`)];
  if (queueOf !== undefined)
    return companyEventKinds.map((kind) => waiting(sql`queue = ${`${kind}/${queueOf}`}`));
  const pending =
    code === undefined
      ? recordEventKinds.map((kind) => waiting(sql`kind = ${kind}`))
      : [waiting(sql`error_code = ${code}`)];
  if (companyId === undefined) {
    if (outcome === 'pending') return pending;
    if (outcome !== undefined && outcome !== 'applied') return [aside(outcome)];
    if (outcome === undefined && code !== undefined)
      return [...pending, aside('dead'), aside('missing')];
  }
  const bounds = [
    companyId === undefined ? sql`true` : sql`company_id = ${companyId}::uuid`,
    ...(since === undefined ? [] : [sql`received_at >= ${since}::timestamptz`]),
    ...(until === undefined ? [] : [sql`received_at < ${until}::timestamptz`]),
  ];
  return [received(sql.join(bounds, sql` and `))];
}

/** A step's rows `(at, key, waits, since)`: the first ones of all sources from a place on. */
function candidatesOf(
  filter: EventFilter,
  { candidates, after, order = 'last first' }: Portion,
): SQL {
  const { from, by } = orders[order];
  const first = sql`
        order by at${by}, key${by}
        limit ${candidates}`;
  const parts = sourcesOf(filter).map(({ table, which, at, key, waits, since }) => {
    // The candidate at the place may have further events.
    const goesOn =
      after === undefined
        ? sql``
        : sql` and (${at}, ${key}) ${from} (${after.at}::timestamptz, ${after.key})`;
    return sql`(
        select ${at} as at, ${key} as key, ${waits} as waits, ${since} as since
        from ${table}
        where ${which}${goesOn}${first}
      )`;
  });
  return sql`
      select *
      from (${sql.join(parts, sql` union all `)}) parts${first}`;
}

/**
 * Steps `candidate` and `found` of a statement: at most `limit` selected events among those that so
 * many candidates lead to, after a place. Each candidate takes some look-ups by an index, and nothing
 * else does.
 */
export function foundEvents(filter: EventFilter, portion: Portion): SQL {
  const { limit, after, order = 'last first' } = portion;
  const { beyond, by } = orders[order];
  const later =
    after === undefined
      ? sql`true`
      : sql`(candidate.at, candidate.key, ${event.id})
          ${beyond} (${after.at}::timestamptz, ${after.key}, ${after.id})`;
  return sql`candidate as materialized (${candidatesOf(filter, portion)}
    ), found as materialized (
      select
        candidate.at,
        candidate.key,
        ${event.id}
      from candidate
        cross join lateral (
          (
            select *
            from ${events}
            where candidate.waits is null
              and ${events.id} = candidate.key
            offset 0
          )
          union all
          (
            select *
            from ${events}
            where ${events.recordId} = candidate.key
              and ${events.kind} = candidate.waits
              and ${events.recordedAt} >= candidate.since
              and ${events.outcome} = 'pending'
            offset 0
          )
        ) ${event}
      where ${matching(filter)}
        and ${later}
      order by candidate.at${by}, candidate.key${by}, ${event.id}${by}
      limit ${limit}
    )`;
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
  type Row = (Place | { id: null }) & { last: Place; looked: number };
  const { rows } = await db.execute<Row & Record<string, unknown>>(sql`
    with ${foundEvents(filter, portion)}, looked as (
      select
        count(*) over ()::int as looked,
        json_build_object('at', candidate.at::text, 'key', candidate.key, 'id', '') as last
      from candidate
      order by candidate.at${back}, candidate.key${back}
      limit 1
    )
    select
      looked.*,
      found.*
    from looked
      left join found on true
    order by found.at${by}, found.key${by}, found.id${by}`);
  const found = rows.flatMap((row): Place[] =>
    row.id === null ? [] : [{ at: row.at, key: row.key, id: row.id }],
  );
  const ids = found.map(({ id }) => id);
  const [first] = rows;
  const last = found.at(-1);
  if (last !== undefined && found.length === portion.limit) return { ids, end: last };
  if (first === undefined || first.looked < portion.candidates) return { ids, end: null };
  const isOfLast = last?.at === first.last.at && last.key === first.last.key;
  return { ids, end: isOfLast ? last : first.last };
}

/** Puts what was read of events in the order of their ids. */
export function inOrder<Row extends { readonly id: string }>(
  ids: readonly string[],
  rows: readonly Row[],
): Row[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
