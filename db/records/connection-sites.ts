import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { connections } from '../schema/utility.ts';

/**
 * Stores the sites that the records of connections list (service.md 2.4), unless an event said later
 * which sites they have. The connections are locked by now.
 */
export async function writeConnectionSites(tx: Executor, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await prepared(tx, 'writeConnectionSites').execute(sql`
    select metersync.store_sites(id, raw -> 'sitesRelations')
    from ${connections}
    where id = any(${array(ids, 'uuid')})
      and ${listsSites(sql`raw`)}
      and raw_updated is not distinct from updated
    order by id`);
}

/** Whether the record of a connection, or an event about it, lists its sites: it need not. */
export const listsSites = (record: SQL): SQL =>
  sql`jsonb_typeof(${record} -> 'sitesRelations') = 'array'`;
