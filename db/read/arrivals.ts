import { sql } from 'drizzle-orm';
import { consoleBounds } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';

/** What became of the newest events of the last day, at most `consoleBounds.arrivalsMax` of them. */
export interface Arrivals {
  readonly events: number;
  readonly outcomes: Partial<Record<EventOutcome, number>>;
}

export async function readArrivals(db: Executor): Promise<Arrivals> {
  const result = await db.execute<{ outcome: EventOutcome; events: number }>(sql`
    select
      outcome,
      count(*)::int as events
    from (
      select ${journal.outcome}
      from ${journal}
      -- Not clock_timestamp(): an index cannot be asked for what changes while it is read. With both
      -- bounds and a limit that is no parameter the planner expects few, also without statistics.
      where ${journal.receivedAt} between now() - interval '1 day' and 'infinity'
      order by ${journal.receivedAt} desc
      limit ${sql.raw(String(consoleBounds.arrivalsMax))}
    ) newest
    group by outcome
    order by count(*) desc`);
  return {
    events: result.rows.reduce((sum, row) => sum + row.events, 0),
    outcomes: Object.fromEntries(result.rows.map((row) => [row.outcome, row.events])),
  };
}
