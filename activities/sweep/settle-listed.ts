import { batches } from '../../contract/limits.ts';
import { unknownNeighbours } from '../../db/events/neighbours.ts';
import { listedRecords, settleRecords } from '../../db/events/settle.ts';
import type { ListedResource } from '../../db/resources.ts';
import type { ActivityDependencies } from '../dependencies.ts';

/**
 * Settles the events of a company that its listings show and that were recorded before these were read, so that
 * the sweep need not read each record again. Documents also need all of their usage to be listed. Leaves a batch
 * to the sweep if its records name a company, a site or a meter without a row: the sweep also reads their listings.
 * Also leaves deletions to it.
 */
export async function settleListed(deps: ActivityDependencies, companyId: string): Promise<void> {
  const { service } = deps;
  await settleKind(deps, 'connections', companyId, ['connections']);
  if (service.has('usageData')) await settleKind(deps, 'documents', companyId, ['documents', 'usageData']);
  else if (!service.has('documentUsage')) await settleKind(deps, 'documents', companyId, ['documents']);
}

async function settleKind(
  deps: ActivityDependencies,
  kind: 'connections' | 'documents',
  companyId: string,
  listings: readonly ListedResource[],
): Promise<void> {
  const { db } = deps.warehouse;
  const { readAt, records } = await listedRecords(db, kind, companyId, listings, batches.recordsSettled);
  for (let at = 0; at < records.length; at += batches.documents) {
    const some = records.slice(at, at + batches.documents);
    const unknown = await unknownNeighbours(db, kind, companyId, some);
    if (unknown.companies.length === 0 && !unknown.sites && !unknown.meters)
      await settleRecords(db, kind, some, readAt, { companyId, shown: some });
  }
}
