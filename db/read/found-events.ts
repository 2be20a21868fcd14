import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { events } from '../schema/metersync.ts';
import { candidatesOf, orders } from './event-candidates.ts';
import { type EventFilter, event, matching } from './event-filter.ts';
import type { Order, Place } from './event-place.ts';

/** How many candidates are looked at from a place on, and how many events are taken; null for all. */
export interface Portion {
  readonly candidates: number;
  readonly limit: number | null;
  readonly after?: Place | undefined;
  readonly order?: Order;
}

/**
 * Steps `candidate` and `found` of a statement: at most `limit` selected events with these columns,
 * among those that so many candidates lead to, after a place. Each candidate takes some look-ups by
 * an index, and nothing else does.
 */
export function foundEvents(
  filter: EventFilter,
  columns: SQL,
  { candidates, limit, after, order = 'last first' }: Portion,
): SQL {
  const { beyond, by } = orders[order];
  const later =
    after === undefined
      ? sql`true`
      : sql`(candidate.at, candidate.key, ${event.id})
          ${beyond} (${after.at}::timestamptz, ${after.key}, ${after.id})`;
  return sql`candidate as materialized (${candidatesOf(filter)({ most: candidates, from: after, order })}
    ), found as materialized (
      select
        candidate.at,
        candidate.key,
        ${columns}
      from candidate
        cross join lateral (
          (
            select *
            from ${events}
            where candidate.is_event
              and ${events.id} = candidate.key
            offset 0
          )
          union all
          (
            select *
            from ${events}
            where not candidate.is_event
              and ${events.recordId} = candidate.key
              and ${events.kind} = candidate.kind
              and ${events.recordedAt} between candidate.since and candidate.until
            offset 0
          )
        ) ${event}
      where ${matching(filter)}
        and coalesce(${event.outcome} = candidate.outcome, true)
        and coalesce(${event.settledAt} = candidate.settled_at, candidate.settled_at is null)
        and ${later}
      order by candidate.at${by}, candidate.key${by}, ${event.id}${by}
      limit ${limit}
    )`;
}

/** Events that were found, and the place where the next ones begin; null if nothing is left. */
export interface FoundPart<Event> {
  readonly events: readonly Event[];
  readonly end: Place | null;
}

/** Reads a portion of the events that a filter selects, with these columns; `id` is one of them. */
export async function readPart<Event extends { readonly id: string }>(
  db: Executor,
  filter: EventFilter,
  columns: SQL,
  portion: Portion,
): Promise<FoundPart<Event>> {
  const { by } = orders[portion.order ?? 'last first'];
  const { by: back } = orders[portion.order === 'first first' ? 'last first' : 'first first'];
  type Row = Event & { last: Place; looked: number; at: string; key: string };
  const { rows } = await db.execute<Row & Record<string, unknown>>(sql`
    with ${foundEvents(filter, columns, portion)}, looked as (
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
  const found = rows.filter(({ id }) => id !== null);
  const events = found.map(
    ({ looked: _looked, last: _last, at: _at, key: _key, ...event }) => event as unknown as Event,
  );
  const [first] = rows;
  const last = found.at(-1);
  if (last !== undefined && found.length === portion.limit) return { events, end: placeOf(last) };
  if (first === undefined || first.looked < portion.candidates) return { events, end: null };
  const isOfLast = last?.at === first.last.at && last.key === first.last.key;
  return { events, end: isOfLast ? placeOf(last) : first.last };
}

const placeOf = ({ at, key, id }: Place): Place => ({ at, key, id });
