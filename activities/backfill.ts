import { Failure } from '../contract/failures.ts';
import {
  type CompanyResource,
  companyResources,
  type RunKind,
  type RunState,
  workflowIds,
} from '../contract/names.ts';
import { companiesAfter } from '../db/backfill-order.ts';
import {
  concludeRun,
  failRunning,
  finishedResources,
  finishRun,
  isReadElsewhere,
  notePartsMissing,
  type RunKey,
  startRun,
} from '../db/runs.ts';
import type { Allowance } from './allowance.ts';
import { backfillIntervals, type CompanyReading, type CompanyStep } from './backfill-intervals.ts';
import { backfillListing, noEndpoint } from './backfill-listing.ts';
import { type CompaniesReading, type CompaniesStep, readTogether } from './backfill-together.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { failing } from './failing.ts';
import { forgetUnread, noteNamed } from './named-companies.ts';
import { refusal } from './own-trouble.ts';
import { reviveService } from './parking.ts';

export type { CompanyReading, CompanyStep } from './backfill-intervals.ts';

export function backfillActivities(deps: ActivityDependencies) {
  const { db } = deps.warehouse;
  return {
    /**
     * Begins a run and reads the list of companies; notes those that settings or the caller name. Fails when the service has
     * none of the caller's; tells otherwise which of them it does not have.
     */
    beginRun: failing(
      async (input: {
        runId: string;
        companies: readonly string[];
      }): Promise<{ readonly refused: readonly string[] }> => {
        await startRun(db, { runId: input.runId, companyId: null, resource: null });
        const listed = await backfillCompanies(deps, input.runId);
        return { refused: await noteNamed(deps, { ...input, listed }) };
      },
    ),

    companiesAfter: failing(async (input: { after: string | null; limit: number }): Promise<string[]> => {
      return await companiesAfter(db, input.after, input.limit);
    }),

    /**
     * Reads what the service has of a company, resource by resource, less what the run has already finished. What the
     * service refuses for good fails that resource alone; what passes is retried by Temporal.
     */
    readCompany: failing(async (input: CompanyReading): Promise<CompanyStep> => {
      // Read with others by another run, it has no workflow whose id would tell.
      if (input.cursor === null && (await isReadElsewhere(db, input))) throw busy(input.companyId);
      return await readCompany(deps, input, await finishedResources(db, input.runId, input.companyId));
    }),

    /** The same for several companies, as long as each is small. */
    readCompanies: failing(
      async (input: CompaniesReading): Promise<CompaniesStep> =>
        await readTogether(deps, input, (...company) => readCompany(deps, ...company)),
    ),

    /** Fails, for Temporal to try again, while another run reads the company. */
    awaitTurn: failing(async ({ companyId }: { companyId: string }): Promise<void> => {
      if (await deps.isRunning(workflowIds.backfillCompany(companyId))) throw busy(companyId);
    }),

    /** Fails the resource of a company that could not be read however often it was tried; whether any is left. */
    giveUpResource: failing(
      async (input: { runId: string; companyId: string; error: string }): Promise<{ done: boolean }> => {
        const [resource, ...left] = await unfinished(deps, input);
        if (resource === undefined) return { done: true };
        await failRun(deps, { ...input, resource }, input.error);
        return { done: left.length === 0 };
      },
    ),

    /** Fails a part of a run; or all of it, with the parts that nobody reads any more. */
    failRun: failing(async (input: RunKey & { error: string; kind?: RunKind }): Promise<void> => {
      if (input.companyId === null && input.resource === null)
        await failRunning(db, input.runId, input.error);
      await failRun(deps, input, input.error, input.kind);
    }),

    concludeRun: failing(
      async (input: { runId: string }): Promise<RunState> => await concludeRun(db, input.runId),
    ),
  };
}

const busy = (companyId: string): Failure =>
  new Failure('COMPANY_BUSY', `another run is reading the company ${companyId}`);

/** Returns whether the service has a list of companies, and it was read. */
async function backfillCompanies(deps: ActivityDependencies, runId: string): Promise<boolean> {
  const key = { runId, companyId: null, resource: 'companies' } as const;
  try {
    await backfillListing(deps, key);
    if (!deps.service.has('companies')) return false;
    await reviveService(deps);
    return true;
  } catch (error) {
    const failure = await refusal(deps, error);
    await failRun(deps, key, `${failure.code}: ${failure.message}`);
    if (failure.code === 'SERVICE_KEY_REFUSED') throw error;
    // Companies seen in events and configured ones are still read.
    deps.log.warn({ code: failure.code, err: failure }, 'the list of companies cannot be read');
    return false;
  }
}

async function failRun(
  deps: ActivityDependencies,
  key: RunKey,
  error: string,
  kind?: RunKind,
): Promise<void> {
  await startRun(deps.warehouse.db, key, kind);
  await finishRun(deps.warehouse.db, key, 'failed', { error });
}

/** Resources of the company that the run has still to read, in their order. */
async function unfinished(
  deps: ActivityDependencies,
  { runId, companyId }: { runId: string; companyId: string },
): Promise<CompanyResource[]> {
  return lessThose(await finishedResources(deps.warehouse.db, runId, companyId));
}

const lessThose = (finished: readonly string[]): CompanyResource[] =>
  companyResources.filter((resource) => !finished.includes(resource));

async function readCompany(
  deps: ActivityDependencies,
  input: CompanyReading,
  finished: readonly string[],
  allowance?: Allowance,
): Promise<CompanyStep> {
  const { runId, companyId } = input;
  const missing = lessThose(finished).filter(
    (resource) => resource !== 'intervals' && !deps.service.has(resource),
  );
  if (missing.length > 0) await notePartsMissing(deps.warehouse.db, input, missing, noEndpoint);
  // Whether every listing so far answered that there is no such company, or none for this key.
  let refused = finished.length === 0;
  let asked = 0;
  for (const resource of lessThose([...finished, ...missing])) {
    const key = { runId, companyId, resource };
    try {
      if (resource === 'intervals') {
        if (refused && asked > 0 && (await forgetUnread(deps, input))) return { done: true, cursor: null };
        return await backfillIntervals(deps, input, allowance);
      }
      asked += 1;
      await backfillListing(deps, { ...key, resource }, allowance);
      refused = false;
    } catch (error) {
      const failure = await refusal(deps, error);
      const reason = `${failure.code}: ${failure.message}`;
      if (failure.code === 'SERVICE_KEY_REFUSED') return await giveUp(deps, input, reason);
      refused &&= failure.code === 'SERVICE_NOT_FOUND' || failure.code === 'SERVICE_ACCESS_DENIED';
      await failRun(deps, key, reason);
    }
  }
  return { done: true, cursor: null };
}

/** Fails what the run has still to read of a company: the key is refused for all of it alike. */
async function giveUp(
  deps: ActivityDependencies,
  input: CompanyReading,
  reason: string,
): Promise<CompanyStep> {
  const { runId, companyId } = input;
  for (const resource of await unfinished(deps, input)) {
    await failRun(deps, { runId, companyId, resource }, reason);
  }
  return { done: true, cursor: null };
}
