import { sql } from 'drizzle-orm';
import { eventKind, refreshStale } from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { tableOf } from '../resources.ts';
import { events, settlements } from '../schema/metersync.ts';
import type { Cte } from './page.ts';

/**
 * Steps that find records read in a state as new as their missing events name, and unsettle them:
 * `requeued (record_id)`. `refreshRequeued` makes these stale again.
 */
export const requeueMissing = (
  resource: 'documents' | 'connections',
  seen: readonly { readonly id: string }[],
): Cte => {
  const ids = seen.map(({ id }) => id).sort();
  const kind = eventKind[resource];
  return sql`missing as materialized (
      select settled.ctid
      from unnest(${array(ids, 'text')}) as asked (record_id)
        cross join lateral (
          select ctid, record_id, outcome
          from ${settlements}
          where kind = ${kind} and record_id = asked.record_id
          offset 0
        ) settled
        cross join lateral (
          select raw_updated
          from ${tableOf(resource)}
          where id = settled.record_id::uuid
          offset 0
        ) r
      where settled.outcome = 'missing'
        and exists (
          select from ${events} e
          where e.record_id = settled.record_id
            and e.kind = ${kind}
            and e.outcome = 'missing'
            and e.occurred_at <= r.raw_updated
          offset 0
        )
    ), requeued as (
      delete from ${settlements}
      where ctid = any(array(select ctid from missing))
      returning record_id
    )`;
};

/** Makes records stale again, after the statement that unsettled them. */
export async function refreshRequeued(
  tx: Executor,
  resource: 'documents' | 'connections',
  ids: readonly string[],
): Promise<void> {
  if (ids.length > 0) await refreshStale(tx, eventKind[resource], ids);
}
