import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { refreshStale } from '../stale.ts';

/** A record is seen after all, in a state as new as events told of in vain: they wait to be settled again. */
export async function lookAgain(
  tx: Executor,
  kind: 'document' | 'connection',
  seen: readonly { readonly id: string }[],
): Promise<void> {
  const ids = seen.map(({ id }) => id);
  const table = kind === 'document' ? sql`utility.documents` : sql`utility.connections`;
  const result = await tx.execute<{ record_id: string }>(sql`
    with found as materialized (
      select missing.record_id
      from unnest(${array([...ids].sort(), 'text')}) as asked (record_id)
        cross join lateral (
          select record_id from metersync.settlements
          where kind = ${kind} and record_id = asked.record_id and outcome = 'missing'
          limit 1
        ) missing
        cross join lateral (
          select raw_updated from ${table} where id = missing.record_id::uuid offset 0
        ) r
      where exists (
        select from metersync.events e
        where e.record_id = missing.record_id and e.kind = ${kind} and e.outcome = 'missing'
          and e.occurred_at <= r.raw_updated)
    )
    delete from metersync.settlements x using found f
    where x.kind = ${kind} and x.record_id = f.record_id and x.outcome = 'missing'
    returning x.record_id`);
  if (result.rows.length === 0) return;
  await refreshStale(
    tx,
    kind,
    result.rows.map(({ record_id }) => record_id),
  );
}
