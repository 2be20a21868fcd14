import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { eventItems, payloadOf, type RecordedEvent } from '../events/items.ts';
import { goneSites, listsSites, relatedSites, serveSites } from '../records/connection-sites.ts';
import { journal } from '../schema/metersync.ts';
import { connections } from '../schema/utility.ts';

/**
 * Applies the sites that events list to connections whose records may not list them. The newest
 * event with a list wins, even if the record was read before the event came. The connections' rows
 * are locked by now, so the later of two groups sees the events of the earlier group. It runs for
 * each group with events of connections. Measured: 0.16 ms and 21 blocks for a lone event; 0.68 ms
 * and 298 blocks in groups of eight.
 */
export async function applyConnectionSites(
  tx: Executor,
  recorded: readonly RecordedEvent[],
): Promise<void> {
  await hot(tx, 'applyConnectionSites').execute(sql`
    with ${eventItems(recorded)}, latest as (
      select distinct on (record_id) record_id, occurred_at, r -> 'sitesRelations' as relations
      from item
      where ${listsSites(sql`r`)}
      order by record_id, occurred_at desc, r -> 'sitesRelations' desc
    ), listing as (
      select c.id as connection_id, l.relations
      from latest l
        join ${connections} c on c.id = l.record_id::uuid
      where (${listsSites(sql`c.raw`)} is not true or c.raw_updated < l.occurred_at)
        and not exists (
          select from ${journal} e
            left join lateral ${payloadOf(sql`e.id`)} said on e.occurred_at >= l.occurred_at
          where e.record_id = l.record_id
            and e.kind = 'connection'
            and case
              when e.occurred_at > l.occurred_at
                then said.payload is null or ${listsSites(sql`said.payload`)}
              when e.occurred_at = l.occurred_at
                then said.payload -> 'sitesRelations' > l.relations
            end
        )
    ), ${relatedSites}, ${goneSites}${serveSites}`);
}
