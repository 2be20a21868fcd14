import { batches } from '../../contract/limits.ts';
import { introduceCompany } from '../../db/backfill/companies.ts';
import { printedUuids } from '../../db/connection/arrays.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { type DueRecords, dueRecords } from '../../db/hot/due-records.ts';
import { insertNamedSites, unknownNeighbours } from '../../db/hot/neighbours.ts';
import { judgePass } from '../../service/stability.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { walkListing } from '../reading/walk-listing.ts';

/** Reads the connections of a company, and the sites and meters that they name. */
export async function catchUpConnections(
  deps: ActivityDependencies,
  companyId: string,
  records?: DueRecords,
): Promise<void> {
  const { db } = deps.warehouse;
  const { readAt, due } = records ?? (await dueRecords(db, 'connections', companyId, batches.recordsSettled));
  const listing = { listing: 'connections', companyId, params: { companyId }, lane: 'live' } as const;
  const walk = { ...listing, beganAt: readAt };
  const { ids, report } = await walkListing(deps, walk);
  const listed = new Set(printedUuids(ids));
  const isProven = judgePass(report.manifest).stable;
  for (let at = 0; at < due.length; at += batches.connections) {
    const some = due.slice(at, at + batches.connections);
    await readNeighbours(deps, 'connections', companyId, some);
    const absent = isProven ? some.filter((id) => !listed.has(id)) : [];
    await settleRecords(db, 'connections', some, readAt, absent, companyId);
  }
}

/**
 * Reads what records that were just read name and the warehouse does not have: the listings that contain their
 * companies' sites and meters. Starts the first backfill of a company without a row, because its records show
 * that the service has it. The meters of a company are also read after each read of its connections.
 */
export async function readNeighbours(
  deps: ActivityDependencies,
  kind: 'connections' | 'documents',
  companyId: string,
  recordIds: readonly string[],
): Promise<void> {
  const { service } = deps;
  const { db } = deps.warehouse;
  const unknown = await unknownNeighbours(db, kind, companyId, recordIds);
  for (const id of unknown.companies) {
    // The backfill begins first: a company with a row counts as known.
    await deps.backfillFirst(id);
    await introduceCompany(db, id);
  }
  let beganAt: string | undefined = unknown.now;
  if (unknown.sites) {
    if (service.has('companies')) {
      const walk = { listing: 'companies', companyId: null, params: {}, lane: 'live' } as const;
      await walkListing(deps, { ...walk, beganAt, existingOnly: true });
      beganAt = undefined;
    }
    await insertNamedSites(db, kind, recordIds);
  }
  if ((unknown.meters || kind === 'connections') && service.has('meters'))
    await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live', beganAt });
}
