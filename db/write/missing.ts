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
      select missing.ctid, missing.record_id
      from unnest(${array([...ids].sort(), 'text')}) as asked (record_id)
        cross join lateral (
          select ctid, record_id, outcome from metersync.settlements
          where kind = ${kind} and record_id = asked.record_id offset 0
        ) missing
        cross join lateral (
          select raw_updated from ${table} where id = missing.record_id::uuid offset 0
        ) r
      where missing.outcome = 'missing' and exists (
        select from metersync.events e
        where e.record_id = missing.record_id and e.kind = ${kind} and e.outcome = 'missing'
          and e.occurred_at <= r.raw_updated offset 0)
    )
    delete from metersync.settlements
    where ctid = any(array(select ctid from found))
    returning record_id`);
  if (result.rows.length === 0) return;
  await refreshStale(
    tx,
    kind,
    result.rows.map(({ record_id }) => record_id),
  );
}
