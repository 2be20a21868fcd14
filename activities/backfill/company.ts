import { type CompanyResource, companyResources } from '../../contract/endpoints.ts';
import type { Failure } from '../../contract/failures.ts';
import { type CompanyInRun, notePartsMissing, readCompanyInRun } from '../../db/backfill/runs.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { refusal } from '../own-failure.ts';
import { failPart } from '../runs.ts';
import { settleListed } from '../sweep/settle-listed.ts';
import { type CompanyReading, type CompanyStep, resumedCursor } from './cursor.ts';
import { backfillIntervals } from './intervals.ts';
import { backfillListing, noEndpoint } from './listing.ts';
import { deleteUnread } from './named-companies.ts';

export type CompanyKey = Omit<CompanyReading, 'cursor'>;

/** How long a slice reads. */
export interface SliceLimits {
  /** Whether the time of the slice is over. */
  readonly isFull: () => boolean;
  /** Why no request is sent, if the gate for all requests was closed when the slice began. */
  readonly closed: Failure | undefined;
}

/**
 * Reads the resources of a company that the run has not finished, listings to their end and meters until the
 * slice is full. A permanent refusal fails only its resource.
 */
export async function readCompany(
  deps: ActivityDependencies,
  reading: CompanyReading,
  { finished, awaited }: CompanyInRun,
  { isFull, closed }: SliceLimits,
): Promise<CompanyStep> {
  const { runId, companyId } = reading;
  const missing = without(finished).filter(
    (resource) => resource !== 'intervals' && !deps.service.has(resource),
  );
  if (missing.length > 0) await notePartsMissing(deps.warehouse.db, reading, missing, noEndpoint);
  const cursor = resumedCursor(companyId, reading.cursor);
  // Whether the service answered 404 or 403 to every listing so far.
  let refused = finished.length === 0;
  let asked = 0;
  for (const resource of without([...finished, ...missing])) {
    const key = { runId, companyId, resource };
    try {
      if (closed !== undefined) throw closed;
      if (resource === 'intervals') {
        if (refused && asked > 0 && (await deleteUnread(deps, reading))) return { done: true, cursor: null };
        if (awaited) await settleListed(deps, companyId);
        return await backfillIntervals(deps, key, cursor, isFull);
      }
      asked += 1;
      await backfillListing(deps, { ...key, resource }, cursor);
      refused = false;
    } catch (error) {
      const failure = await refusal(deps, error);
      const reason = `${failure.code}: ${failure.message}`;
      if (failure.code === 'SERVICE_KEY_REFUSED') {
        // All resources are read with the same key, so the others would be refused, too.
        await giveUpCompany(deps, reading, reason);
        return { done: true, cursor: null };
      }
      refused &&= failure.code === 'SERVICE_NOT_FOUND' || failure.code === 'SERVICE_ACCESS_DENIED';
      await failPart(deps, key, reason);
    }
  }
  return { done: true, cursor: null };
}

/** Fails the resource that was tried as often as allowed. Returns whether it was the company's last one. */
export async function giveUpResource(
  deps: ActivityDependencies,
  company: CompanyKey,
  reason: string,
): Promise<{ done: boolean }> {
  const [resource, ...left] = await unfinished(deps, company);
  if (resource === undefined) return { done: true };
  await failPart(deps, { ...company, resource }, reason);
  return { done: left.length === 0 };
}

/** Fails every resource of the company that the run has not finished. */
export async function giveUpCompany(
  deps: ActivityDependencies,
  { runId, companyId }: CompanyKey,
  reason: string,
): Promise<void> {
  for (const resource of await unfinished(deps, { runId, companyId }))
    await failPart(deps, { runId, companyId, resource }, reason);
}

/** Returns the resources of the company that the run has not finished, in order. */
async function unfinished(
  { warehouse }: ActivityDependencies,
  { runId, companyId }: CompanyKey,
): Promise<CompanyResource[]> {
  return without((await readCompanyInRun(warehouse.db, runId, companyId)).finished);
}

const without = (finished: readonly string[]): CompanyResource[] =>
  companyResources.filter((resource) => !finished.includes(resource));
