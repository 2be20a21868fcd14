import { sql } from 'drizzle-orm';
import type { SingleEndpoint } from '../../contract/endpoints.ts';
import type { companyEventKinds } from '../../contract/event.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { closedEndpoints, isOpen, isServiceClosed } from '../events/gates.ts';
import { isDeletion } from '../events/items.ts';
import { ownerOf } from '../events/queue.ts';
import { journal } from '../schema/metersync.ts';

/** Records of a company that events are pending for. */
export interface PendingRecords extends Record<string, unknown> {
  readonly kind: (typeof companyEventKinds)[number];
  readonly owner: string;
  readonly records: readonly string[];
  /** Those of them of which an event says something else than that they were deleted. */
  readonly changed: readonly string[];
  /** The warehouse's clock before anything is read. */
  readonly now: string;
  /** Endpoints with a closed gate. */
  readonly closed: readonly SingleEndpoint[];
}

/**
 * Returns the records of the given events that nobody has tried to read yet, by owner; none behind a
 * closed gate: only the sweep asks whether it can be opened again. Ranges of readings are
 * left to the sweep, which reads a meter in one lane at a time: of two reads of a meter at the same
 * time, the earlier could bring back what the later did not show. It runs for each group of events.
 * Measured: 0.08 ms and 5 blocks for one event.
 */
export async function pendingAmong(
  db: Executor,
  eventIds: readonly string[],
): Promise<PendingRecords[]> {
  const { rows } = await hot(db, 'pendingAmong').execute<PendingRecords>(sql`
    select
      e.kind,
      ${ownerOf(sql`e`)} as owner,
      array_agg(distinct e.record_id) as records,
      coalesce(array_agg(distinct e.record_id) filter (where not ${isDeletion(sql`e.type`)}), '{}') as changed,
      clock_timestamp()::text as now,
      ${closedEndpoints} as closed
    from unnest(${array(eventIds, 'text')}) as asked (id)
      cross join lateral (
        select *
        from ${journal}
        where id = asked.id
        offset 0
      ) e
    where e.outcome = 'pending'
      and e.attempts = 0
      and e.kind <> 'interval'
      and not ${isServiceClosed}
      and ${isOpen(sql`e.queue`)}
    group by e.kind, owner`);
  return rows;
}
