import { printedUuids } from '../db/arrays.ts';
import { dueRecords, settleRecords, unreadNeighbours, warehouseNow } from '../db/catch-up.ts';
import { judgePass } from '../service/stability.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { walkListing } from './listing.ts';

const connectionsTogether = 5_000;

/** Reads the connections of a company again, and what they brought along. */
export async function catchUpConnections(deps: ActivityDependencies, companyId: string): Promise<void> {
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  const due = await dueRecords(db, 'connections', companyId, connectionsTogether);
  const walk = { listing: 'connections', companyId, params: { companyId }, lane: 'live' } as const;
  const { ids, report } = await walkListing(deps, walk);
  await refreshNeighbours(deps, companyId, { meters: true });
  const shown = new Set(printedUuids(ids));
  const notShown = judgePass(report.manifest).stable ? due.filter((id) => !shown.has(id)) : [];
  await settleRecords(db, 'connections', due, readAt, notShown, companyId);
}

/** Reads what is known by name only, or not as it is: the company and its sites, meters that usage names. */
export async function refreshNeighbours(
  deps: ActivityDependencies,
  companyId: string,
  also: { meters: boolean; documentIds?: readonly string[] },
): Promise<void> {
  const unread = await unreadNeighbours(deps.warehouse.db, companyId, also.documentIds ?? []);
  if (unread.companies && deps.service.has('companies')) {
    await walkListing(deps, { listing: 'companies', companyId: null, params: {}, lane: 'live' });
  }
  if ((also.meters || unread.meters) && deps.service.has('meters')) {
    await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live' });
  }
}
