import { type CompanyResource, companyResources } from '../../contract/endpoints.ts';
import { batches } from '../../contract/limits.ts';
import { type RunKind, reconciledResources } from '../../contract/names.ts';
import { notePartsMissing, readCompanyInRun } from '../../db/backfill/runs.ts';
import { unknownNeighbours } from '../../db/events/neighbours.ts';
import { listedRecords, settleRecords } from '../../db/events/settle.ts';
import type { ListedResource } from '../../db/resources.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { closedService } from '../gates.ts';
import { refusal } from '../own-failure.ts';
import { failPart } from '../runs.ts';
import type { CompanyKey } from './cursor.ts';
import { backfillIntervals, type MeterTurns } from './intervals.ts';
import { backfillListing, noEndpoint } from './listing.ts';
import { deleteUnread } from './named-companies.ts';

/**
 * Reads the resources of a company that the run has not finished, from where an earlier attempt stopped. A
 * permanent refusal fails only its resource.
 */
export async function readCompany(
  deps: ActivityDependencies,
  company: CompanyKey,
  turns: MeterTurns,
): Promise<void> {
  const { runId, companyId } = company;
  const { finished, awaited } = await readCompanyInRun(deps.warehouse.db, company);
  const missing = without(finished).filter(
    (resource) => resource !== 'intervals' && !deps.service.has(resource),
  );
  if (missing.length > 0) await notePartsMissing(deps.warehouse.db, company, missing, noEndpoint);
  const closed = await closedService(deps);
  // Whether the service answered 404 or 403 to every listing so far.
  let refused = finished.length === 0;
  let asked = 0;
  for (const resource of without([...finished, ...missing])) {
    const key = { runId, companyId, resource };
    try {
      if (closed !== undefined) throw closed;
      if (resource === 'intervals') {
        if (refused && asked > 0 && (await deleteUnread(deps, company))) return;
        if (awaited) await settleListed(deps, companyId);
        await backfillIntervals(deps, key, turns);
      } else {
        asked += 1;
        await backfillListing(deps, { ...key, resource });
        refused = false;
      }
    } catch (error) {
      const failure = await refusal(deps, error);
      const reason = `${failure.code}: ${failure.message}`;
      // All resources are read with the same key, so the others would be refused, too.
      if (failure.code === 'SERVICE_KEY_REFUSED') return await giveUpCompany(deps, company, reason);
      refused &&= failure.code === 'SERVICE_NOT_FOUND' || failure.code === 'SERVICE_ACCESS_DENIED';
      await failPart(deps, key, reason);
    }
  }
}

/** Fails and returns the resource of a company that was tried as often as allowed. The others can still be read. */
export async function giveUpResource(
  deps: ActivityDependencies,
  company: CompanyKey,
  kind: RunKind,
  reason: string,
): Promise<CompanyResource | undefined> {
  const [resource] = await unfinished(deps, company, kind);
  if (resource !== undefined) await failPart(deps, { ...company, resource }, reason, kind);
  return resource;
}

/** Fails every resource of the company that the run has not finished. */
async function giveUpCompany(deps: ActivityDependencies, company: CompanyKey, reason: string): Promise<void> {
  for (const resource of await unfinished(deps, company, 'full'))
    await failPart(deps, { ...company, resource }, reason);
}

/** Returns the resources of the company that the run has not finished, in order. */
async function unfinished(
  { warehouse }: ActivityDependencies,
  company: CompanyKey,
  kind: RunKind,
): Promise<CompanyResource[]> {
  const { finished } = await readCompanyInRun(warehouse.db, company);
  return without(finished, kind === 'full' ? companyResources : reconciledResources);
}

const without = (
  finished: readonly string[],
  all: readonly CompanyResource[] = companyResources,
): CompanyResource[] => all.filter((resource) => !finished.includes(resource));

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
