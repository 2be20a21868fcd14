import { sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';
import { events, journal } from '../schema/metersync.ts';

/**
 * Drops the payloads of the oldest settled events that were received more than `days` ago; returns
 * how many. Their rows stay, so that a late delivery still finds its id. Pending, dead and missing
 * events keep their bytes at any age: no other copy exists.
 */
export async function dropPayloads(
  db: Executor,
  { days, limit }: { days: number; limit: number },
): Promise<number> {
  const result = await db.execute(sql`
    update ${journal}
    set payload = null,
      body = null,
      payload_dropped_at = clock_timestamp()
    from (
      select ${events.id}
      from ${events}
      where ${events.payloadDroppedAt} is null
        and ${events.receivedAt} < clock_timestamp() - make_interval(days => ${days}::int)
        and ${events.outcome} in ('applied', 'superseded', 'ignored')
      order by ${events.receivedAt}
      limit ${limit}
    ) old
    where ${journal.id} = old.id
      and ${journal.payloadDroppedAt} is null`);
  return result.rowCount ?? 0;
}
