import { type SQL, sql } from 'drizzle-orm';
import { events } from '../schema/metersync.ts';
import { candidatesOf } from './event-candidates.ts';
import { type EventFilter, event, matching } from './event-filter.ts';
import type { Place } from './event-place.ts';

/**
 * Steps `candidate` and `found` of a statement: at most `limit` selected events with these columns,
 * among those that so many candidates lead to, after a place. Each candidate takes some look-ups by
 * an index, and nothing else does.
 */
export function foundEvents(
  filter: EventFilter,
  columns: SQL,
  { candidates, limit, after }: { candidates: number; limit: number; after?: Place | undefined },
): SQL {
  const later =
    after === undefined
      ? sql`true`
      : sql`(candidate.at, candidate.key, ${event.id})
          < (${after.at}::timestamptz, ${after.key}, ${after.id})`;
  return sql`candidate as materialized (${candidatesOf(filter)(candidates, after)}
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
      order by candidate.at desc, candidate.key desc, ${event.id} desc
      limit ${limit}
    )`;
}
