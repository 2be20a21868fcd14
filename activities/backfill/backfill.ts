import { Failure } from '../../contract/failures.ts';
import { workflowIds } from '../../contract/names.ts';
import { chosenAfter, isOfChosen, refuseChosen } from '../../db/backfill/chosen-companies.ts';
import { companiesAfter } from '../../db/backfill/order.ts';
import { readCompanyInRun } from '../../db/backfill/runs.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { failIfClosed } from '../gates.ts';
import { mapFailures } from '../map-failures.ts';
import { refusal } from '../own-failure.ts';
import { failPart, noteRunStart } from '../runs.ts';
import { type CompanyKey, giveUpCompany, giveUpResource, readCompany } from './company.ts';
import { type CompanyReading, type CompanyStep, resumedCursor } from './cursor.ts';
import { backfillListing } from './listing.ts';
import { noteConfigured, noteNamed } from './named-companies.ts';
import { beginSlice, readSlice, type Slice, type SliceRead } from './slice.ts';

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
    /** Begins a run. Notes companies of the settings and of the list; returns whether the list was read. */
    beginRun: mapFailures(async ({ runId }: { runId: string }): Promise<{ readonly listed: boolean }> => {
      await noteRunStart(deps, runId);
      const listed = await backfillCompanies(deps, runId);
      await noteConfigured(deps, { runId, listed });
      return { listed };
    }),

    /** Returns the companies that a run reads next, of those chosen for it, or of all if none were chosen. */
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

    /** Reads a company until it is done or the slice is full. Temporal retries temporary failures. */
    readCompany: mapFailures(async (reading: CompanyReading): Promise<CompanyStep> => {
      const inRun = await readCompanyInRun(db, reading.runId, reading.companyId);
      if (inRun.busy) throw companyBusy(reading.companyId);
      return await readCompany(deps, reading, inRun, await beginSlice(deps));
    }),

    readCompanies: mapFailures(async (slice: Slice): Promise<SliceRead> => await readSlice(deps, slice)),

    /** Fails while another run reads the company, so that Temporal tries again later. */
    awaitTurn: mapFailures(async ({ companyId }: { companyId: string }): Promise<void> => {
      const ended = await deps.howEnded(workflowIds.backfillCompany(companyId));
      if (ended === undefined) throw companyBusy(companyId);
    }),

    giveUpResource: mapFailures(
      async ({ error, ...company }: CompanyKey & { error: string }): Promise<{ done: boolean }> =>
        await giveUpResource(deps, company, error),
    ),

    giveUpCompany: mapFailures(
      async ({ error, ...company }: CompanyKey & { error: string }): Promise<void> =>
        await giveUpCompany(deps, company, error),
    ),
  };
}

const companyBusy = (companyId: string): Failure =>
  new Failure('COMPANY_BUSY', `another run is reading the company ${companyId}`);

/** Reads the list of companies. Returns false if the service has none, or refuses it. */
async function backfillCompanies(deps: ActivityDependencies, runId: string): Promise<boolean> {
  const key = { runId, companyId: null, resource: 'companies' } as const;
  try {
    await failIfClosed(deps);
    await backfillListing(deps, key, resumedCursor(null, null));
    return deps.service.has('companies');
  } catch (error) {
    const failure = await refusal(deps, error);
    await failPart(deps, key, `${failure.code}: ${failure.message}`);
    if (failure.code === 'SERVICE_KEY_REFUSED') throw error;
    // Companies seen in events and configured ones are still read.
    deps.log.warn({ code: failure.code, err: failure }, 'the list of companies cannot be read');
    return false;
  }
}
