import { batches } from '../../contract/limits.ts';
import { dueRecords } from '../../db/catch-up/due.ts';
import { settleRecords } from '../../db/catch-up/settle.ts';
import { readSurroundings } from '../../db/catch-up/surroundings.ts';
import { printedUuids } from '../../db/connection/arrays.ts';
import { judgePass } from '../../service/stability.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { walkListing } from '../reading/walk-listing.ts';

/** Reads the connections of a company, and the unread company, sites and meters that they name. */
export async function catchUpConnections(deps: ActivityDependencies, companyId: string): Promise<void> {
  const { db } = deps.warehouse;
  const { readAt, due } = await dueRecords(db, 'connections', companyId, batches.connections);
  const listing = { listing: 'connections', companyId, params: { companyId }, lane: 'live' } as const;
  const walk = { ...listing, beganAt: readAt };
  const { ids, report } = await walkListing(deps, walk);
  await refreshNeighbours(deps, 'connections', companyId, due, { meters: true });
  const listed = new Set(printedUuids(ids));
  const absent = judgePass(report.manifest).stable ? due.filter((id) => !listed.has(id)) : [];
  await settleRecords(db, 'connections', due, readAt, absent, companyId);
}

/**
 * Reads what just read records name and was never read: the list of companies for the company or its sites,
 * and the meters for usage. `meters` has these read in any case, if the company lives.
 */
export async function refreshNeighbours(
  deps: ActivityDependencies,
  kind: 'connections' | 'documents',
  companyId: string,
  recordIds: readonly string[],
  { meters }: { meters: boolean },
): Promise<void> {
  const unread = await readSurroundings(deps.warehouse.db, kind, companyId, recordIds);
  let beganAt: string | undefined = unread.now;
  if (unread.companies && deps.service.has('companies')) {
    const walk = { listing: 'companies', companyId: null, params: {}, lane: 'live' } as const;
    await walkListing(deps, { ...walk, beganAt, existingOnly: true });
    beganAt = undefined;
  }
  if ((unread.meters || (meters && unread.lives)) && deps.service.has('meters')) {
    await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live', beganAt });
  }
}
