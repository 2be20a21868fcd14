import { sql } from 'drizzle-orm';
import type { EventOutcome } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { consoleBounds } from './bounds.ts';

/** What became of the events of an hour that are among the newest of the last day. */
export interface HourOfEvents {
  /** When the hour began, as ISO 8601 in UTC. */
  readonly hour: string;
  readonly outcomes: Partial<Record<EventOutcome, number>>;
  /** Events of these hours that still waited at the end of this one. */
  readonly waiting: number;
  /** Seconds from the receipt of an event to its row, and to the read of its record; null without any. */
  readonly rowP50: number | null;
  readonly rowP99: number | null;
  readonly recordP50: number | null;
  readonly recordP99: number | null;
}

/** The newest events of the last day by hour, at most `consoleBounds.arrivalsMax` of them, the oldest first. */
export async function readArrivals(db: Executor): Promise<HourOfEvents[]> {
  const result = await db.execute<HourOfEvents & Record<string, unknown>>(sql`
    with newest as materialized (
      select
        ${journal.outcome},
        ${journal.receivedAt},
        date_bin('1 hour', ${journal.receivedAt}, 'epoch') as hour,
        case when ${journal.outcome} <> 'pending'
          then date_bin('1 hour', coalesce(${journal.settledAt}, ${journal.recordedAt}), 'epoch')
        end as ended,
        extract(epoch from ${journal.recordedAt} - ${journal.receivedAt})::float8 as row_after,
        extract(epoch from ${journal.settledAt} - ${journal.receivedAt})::float8 as record_after
      from ${journal}
      -- Not clock_timestamp(): an index cannot be asked for what changes while it is read. With both
      -- bounds and a limit that is no parameter the planner expects few, also without statistics.
      where ${journal.receivedAt} between now() - interval '1 day' and 'infinity'
      order by ${journal.receivedAt} desc
      limit ${sql.raw(String(consoleBounds.arrivalsMax))}
    ), counted as (
      select hour, outcome, count(*)::int as events from newest group by hour, outcome
    ), outcomes as (
      select hour, jsonb_object_agg(outcome, events) as outcomes, sum(events) as events
      from counted
      group by hour
    ), delays as (
      select
        hour,
        percentile_cont(0.5) within group (order by row_after) as "rowP50",
        percentile_cont(0.99) within group (order by row_after) as "rowP99",
        percentile_cont(0.5) within group (order by record_after) as "recordP50",
        percentile_cont(0.99) within group (order by record_after) as "recordP99"
      from newest
      group by hour
    ), ended as (
      select ended as hour, count(*) as events
      from newest
      where ended is not null
      group by ended
    )
    select
      to_char(outcomes.hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') as hour,
      outcomes,
      (
        sum(outcomes.events) over (order by outcomes.hour)
        - (select coalesce(sum(ended.events), 0) from ended where ended.hour <= outcomes.hour)
      )::int as waiting,
      "rowP50",
      "rowP99",
      "recordP50",
      "recordP99"
    from outcomes
      join delays on delays.hour = outcomes.hour
    order by outcomes.hour`);
  return result.rows;
}
