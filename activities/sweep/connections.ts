import { batches } from '../../contract/limits.ts';
import { admitCompany, admitSites, tombstoneUnverified } from '../../db/backfill/strangers.ts';
import { printedUuids } from '../../db/connection/arrays.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { type DueRecords, dueRecords } from '../../db/hot/due-records.ts';
import { type Surroundings, surroundings } from '../../db/hot/surroundings.ts';
import { judgePass } from '../../service/stability.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { walkListing } from '../reading/walk-listing.ts';

/** Reads the connections of a company, and the unread company, sites and meters that they name. */
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
  let admitted = true;
  for (let at = 0; at < due.length; at += batches.connections) {
    const some = due.slice(at, at + batches.connections);
    admitted = await admitAndRefresh(deps, 'connections', companyId, some, { meters: true });
    const absent = isProven ? some.filter((id) => !listed.has(id)) : [];
    await settleRecords(db, 'connections', some, readAt, absent, companyId);
  }
  if (!admitted) await tombstoneUnverified(db, companyId);
}

/**
 * Writes the rows of a company and of sites that so far only events named, once their records were read, and
 * starts the first backfill of a new company. Lists the companies if the company or its sites are new.
 * Reads the meters if usage names unread meters, or if `meters` asks for it and the company has a row.
 * @returns whether the company has a row now
 */
export async function admitAndRefresh(
  deps: ActivityDependencies,
  kind: 'connections' | 'documents',
  companyId: string,
  recordIds: readonly string[],
  { meters }: { meters: boolean },
): Promise<boolean> {
  const { db } = deps.warehouse;
  const around = await surroundings(db, kind, companyId, recordIds);
  const admitted = around.admitted || (await admit(deps, kind, companyId, recordIds));
  const unread = around.admitted ? around : await surroundings(db, kind, companyId, recordIds);
  await refreshNeighbours(deps, companyId, { ...unread, meters: (meters && admitted) || unread.meters });
  return admitted;
}

async function admit(
  { warehouse: { db }, backfillFirst }: ActivityDependencies,
  kind: 'connections' | 'documents',
  companyId: string,
  recordIds: readonly string[],
): Promise<boolean> {
  const company = await admitCompany(db, companyId);
  if (company === undefined) return false;
  if (company.neverRead) await backfillFirst(companyId);
  await admitSites(db, kind, recordIds);
  return true;
}

async function refreshNeighbours(
  deps: ActivityDependencies,
  companyId: string,
  unread: Surroundings,
): Promise<void> {
  let beganAt: string | undefined = unread.now;
  if (unread.companies && deps.service.has('companies')) {
    const walk = { listing: 'companies', companyId: null, params: {}, lane: 'live' } as const;
    await walkListing(deps, { ...walk, beganAt, existingOnly: true });
    beganAt = undefined;
  }
  if (unread.meters && deps.service.has('meters')) {
    await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live', beganAt });
  }
}
