import { dueRecords, settleRecords, unreadNeighbours, warehouseNow } from '../db/catch-up.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { walkListing } from './listing.ts';

const connectionsTogether = 5_000;

/** Reads the connections of a company again, and what they brought along. */
export async function catchUpConnections(deps: ActivityDependencies, companyId: string): Promise<void> {
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  const due = await dueRecords(db, 'connections', companyId, connectionsTogether);
  await walkListing(deps, { listing: 'connections', companyId, params: { companyId }, lane: 'live' });
  await refreshNeighbours(deps, companyId, { meters: true });
  await settleRecords(db, 'connections', due, readAt);
}

/** Reads what is known by name only: the company and its sites, meters that usage names. */
export async function refreshNeighbours(
  deps: ActivityDependencies,
  companyId: string,
  also: { meters: boolean },
): Promise<void> {
  const unread = await unreadNeighbours(deps.warehouse.db, companyId);
  if (unread.companies && deps.service.has('companies')) {
    await walkListing(deps, { listing: 'companies', companyId: null, params: {}, lane: 'live' });
  }
  if ((also.meters || unread.meters) && deps.service.has('meters')) {
    await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live' });
  }
}
