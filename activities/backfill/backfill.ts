import { type CompanyResource, companyResources } from '../../contract/endpoints.ts';
import { Failure } from '../../contract/failures.ts';
import { workflowIds } from '../../contract/names.ts';
import { chosenAfter, isOfChosen, refuseChosen } from '../../db/backfill/chosen-companies.ts';
import { companiesAfter } from '../../db/backfill/order.ts';
import { finishedResources, isReadElsewhere, notePartsMissing } from '../../db/backfill/runs.ts';
import type { Allowance } from '../allowance.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { mapFailures } from '../map-failures.ts';
import { refusal } from '../own-failure.ts';
import { reviveService } from '../parking.ts';
import { failPart, noteRunStart } from '../runs.ts';
import { backfillIntervals, type CompanyReading, type CompanyStep } from './intervals.ts';
import { backfillListing, noEndpoint } from './listing.ts';
import { deleteUnread, noteConfigured, noteNamed } from './named-companies.ts';
import { type CompaniesReading, type CompaniesStep, readTogether } from './together.ts';

export type { CompanyReading, CompanyStep } from './intervals.ts';

export interface NextCompanies {
  readonly runId: string;
  readonly after: string | null;
  readonly limit: number;
  /** Whether the list of companies was read. */
  readonly listed: boolean;
}

export interface CompaniesNext {
  readonly companies: readonly string[];
  /** The last company examined, even if the service lacks it; null when there are no more. */
  readonly last: string | null;
}

export function backfillActivities(deps: ActivityDependencies) {
  const { db } = deps.warehouse;
  return {
    /**
     * Begins a run, reads the list of companies and notes those of the settings. Returns whether the list was
     * read.
     */
    beginRun: mapFailures(async ({ runId }: { runId: string }): Promise<{ readonly listed: boolean }> => {
      await noteRunStart(deps, runId);
      const listed = await backfillCompanies(deps, runId);
      await noteConfigured(deps, { runId, listed });
      return { listed };
    }),

    /** Returns the companies that a run reads next: of those chosen for it, else of all in the warehouse. */
    nextCompanies: mapFailures(async (input: NextCompanies): Promise<CompaniesNext> => {
      const { runId, after, limit, listed } = input;
      const chosen = await isOfChosen(db, runId);
      const next = chosen
        ? await chosenAfter(db, runId, after, limit)
        : await companiesAfter(db, after, limit);
      const last = next.length < limit ? null : (next.at(-1) ?? null);
      if (!chosen) return { companies: next, last };
      const { noted, refused } = await noteNamed(deps, { ids: next, listed });
      await refuseChosen(db, runId, refused);
      return { companies: noted, last };
    }),

    companiesAfter: mapFailures(async (input: { after: string | null; limit: number }): Promise<string[]> => {
      return await companiesAfter(db, input.after, input.limit);
    }),

    /**
     * Reads a company, resource by resource, and skips those that the run has finished. A permanent refusal
     * fails that resource alone; Temporal retries other failures.
     */
    readCompany: mapFailures(async (input: CompanyReading): Promise<CompanyStep> => {
      // A run that reads it together with others has no workflow of its own, whose id would collide.
      if (input.cursor === null && (await isReadElsewhere(db, input))) throw busy(input.companyId);
      return await readCompany(deps, input, await finishedResources(db, input.runId, input.companyId));
    }),

    /** Reads several companies, as long as each is small. */
    readCompanies: mapFailures(
      async (input: CompaniesReading): Promise<CompaniesStep> =>
        await readTogether(deps, input, (...company) => readCompany(deps, ...company)),
    ),

    /** Fails, for Temporal to try again, while another run reads the company. */
    awaitTurn: mapFailures(async ({ companyId }: { companyId: string }): Promise<void> => {
      const ended = await deps.howEnded(workflowIds.backfillCompany(companyId));
      if (ended === undefined) throw busy(companyId);
    }),

    /** Fails the resource whose tries are used up. Returns whether it was the company's last. */
    giveUpResource: mapFailures(
      async (input: { runId: string; companyId: string; error: string }): Promise<{ done: boolean }> => {
        const [resource, ...left] = await unfinished(deps, input);
        if (resource === undefined) return { done: true };
        await failPart(deps, { ...input, resource }, input.error);
        return { done: left.length === 0 };
      },
    ),

    /** Fails every resource of the company that the run has not finished. */
    giveUpCompany: mapFailures(
      async (input: { runId: string; companyId: string; error: string }): Promise<void> =>
        await giveUp(deps, input, input.error),
    ),
  };
}

const busy = (companyId: string): Failure =>
  new Failure('COMPANY_BUSY', `another run is reading the company ${companyId}`);

/** Reads the list of companies. Returns false if the service has none, or refuses it. */
async function backfillCompanies(deps: ActivityDependencies, runId: string): Promise<boolean> {
  const key = { runId, companyId: null, resource: 'companies' } as const;
  try {
    await backfillListing(deps, key);
    if (!deps.service.has('companies')) return false;
    await reviveService(deps);
    return true;
  } catch (error) {
    const failure = await refusal(deps, error);
    await failPart(deps, key, `${failure.code}: ${failure.message}`);
    if (failure.code === 'SERVICE_KEY_REFUSED') throw error;
    // Companies seen in events and configured ones are still read.
    deps.log.warn({ code: failure.code, err: failure }, 'the list of companies cannot be read');
    return false;
  }
}

/** Returns the resources of the company that the run has not finished, in order. */
async function unfinished(
  deps: ActivityDependencies,
  { runId, companyId }: { runId: string; companyId: string },
): Promise<CompanyResource[]> {
  return without(await finishedResources(deps.warehouse.db, runId, companyId));
}

const without = (finished: readonly string[]): CompanyResource[] =>
  companyResources.filter((resource) => !finished.includes(resource));

async function readCompany(
  deps: ActivityDependencies,
  input: CompanyReading,
  finished: readonly string[],
  allowance?: Allowance,
): Promise<CompanyStep> {
  const { runId, companyId } = input;
  const missing = without(finished).filter(
    (resource) => resource !== 'intervals' && !deps.service.has(resource),
  );
  if (missing.length > 0) await notePartsMissing(deps.warehouse.db, input, missing, noEndpoint);
  // Whether every listing so far answered 404 or 403.
  let refused = finished.length === 0;
  let asked = 0;
  for (const resource of without([...finished, ...missing])) {
    const key = { runId, companyId, resource };
    try {
      if (resource === 'intervals') {
        if (refused && asked > 0 && (await deleteUnread(deps, input))) return { done: true, cursor: null };
        return await backfillIntervals(deps, input, allowance);
      }
      asked += 1;
      await backfillListing(deps, { ...key, resource }, allowance);
      refused = false;
    } catch (error) {
      const failure = await refusal(deps, error);
      const reason = `${failure.code}: ${failure.message}`;
      if (failure.code === 'SERVICE_KEY_REFUSED') {
        // The key is the same for every resource.
        await giveUp(deps, input, reason);
        return { done: true, cursor: null };
      }
      refused &&= failure.code === 'SERVICE_NOT_FOUND' || failure.code === 'SERVICE_ACCESS_DENIED';
      await failPart(deps, key, reason);
    }
  }
  return { done: true, cursor: null };
}

async function giveUp(
  deps: ActivityDependencies,
  { runId, companyId }: { readonly runId: string; readonly companyId: string },
  reason: string,
): Promise<void> {
  for (const resource of await unfinished(deps, { runId, companyId })) {
    await failPart(deps, { runId, companyId, resource }, reason);
  }
}
