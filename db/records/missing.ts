import { sql } from 'drizzle-orm';
import { array, type RowOf } from '../arrays.ts';
import { eventKind, refreshStale } from '../catch-up/stale.ts';
import type { Executor } from '../connect.ts';
import { tableOf } from '../resources.ts';
import { events, settlements } from '../schema/metersync.ts';

/** Makes records stale again that were read in a state as new as their missing events name. */
export async function requeueMissing(
  tx: Executor,
  resource: 'documents' | 'connections',
  seen: readonly { readonly id: string }[],
): Promise<void> {
  const ids = seen.map(({ id }) => id);
  const kind = eventKind[resource];
  const result = await tx.execute<RowOf<typeof settlements.recordId>>(sql`
    with found as materialized (
      select missing.ctid, missing.record_id
      from unnest(${array([...ids].sort(), 'text')}) as asked (record_id)
        cross join lateral (
          select ctid, record_id, outcome
          from ${settlements}
          where kind = ${kind} and record_id = asked.record_id
          offset 0
        ) missing
        cross join lateral (
          select raw_updated
          from ${tableOf(resource)}
          where id = missing.record_id::uuid
          offset 0
        ) r
      where missing.outcome = 'missing'
        and exists (
          select from ${events} e
          where e.record_id = missing.record_id
            and e.kind = ${kind}
            and e.outcome = 'missing'
            and e.occurred_at <= r.raw_updated
          offset 0
        )
    )
    delete from ${settlements}
    where ctid = any(array(select ctid from found))
    returning record_id`);
  if (result.rows.length === 0) return;
  await refreshStale(
    tx,
    kind,
    result.rows.map(({ record_id }) => record_id),
  );
}
