import { sql } from 'drizzle-orm';
import type { RowOf } from '../connection/arrays.ts';
import { hot } from '../connection/hot.ts';
import { resources } from '../resources.ts';
import type { settlements } from '../schema/metersync.ts';
import { connections } from '../schema/utility.ts';
import { goneSites, listsSites, relatedSites, serveSites } from './connection-sites.ts';
import { refreshRequeued, requeueMissing } from './missing.ts';
import { countRows, items, type UpsertPage, type WrittenRow } from './page.ts';
import { upsertRecords } from './upsert.ts';

/**
 * Writes connections, and the sites that their records list (seed 2.4). Sites are written only if
 * the row now holds the page's record.
 */
export const upsertConnections: UpsertPage = async (tx, page, closing) => {
  const { rows } = await hot(tx, 'upsertConnections').execute<WrittenRow & { id: string }>(sql`
    with ${upsertRecords(resources.connections, { items: items(page), page })}, ${closing}
    select id, inserted, own, clock_timestamp()::text as now
    from written`);
  const changed = rows.filter(({ inserted }) => !inserted);
  const requeued = await hot(tx, 'requeueConnections').execute<
    RowOf<typeof settlements.recordId>
  >(sql`
    with ${items(page)}, listing as (
      select distinct on (c.id) c.id as connection_id, item.r -> 'sitesRelations' as relations
      from item
        join ${connections} c on c.id = (item.r ->> 'id')::uuid and c.raw = item.r
      where ${listsSites(sql`item.r`)}
        and c.raw_updated is not distinct from c.updated
    ), ${relatedSites}, ${goneSites}, served as (${serveSites}
    ), ${requeueMissing('connections', changed)}
    select record_id
    from requeued`);
  const requeuedIds = requeued.rows.map(({ record_id }) => record_id);
  await refreshRequeued(tx, 'connections', requeuedIds);
  return countRows(rows);
};
