import {
  ActivityFailure,
  ApplicationFailure,
  defineQuery,
  isCancellation,
  setHandler,
} from '@temporalio/workflow';
import type { IntervalCursor } from '../activities/backfill.ts';
import { type CompanyResource, companyResources, queryNames } from '../contract/names.ts';
import { backfilling, noting } from './proxies.ts';

export interface CompanyProgress {
  readonly companyId: string;
  readonly resource: CompanyResource | null;
}

export const companyProgress = defineQuery<CompanyProgress>(queryNames.progress);

export interface CompanyBackfill {
  readonly runId: string;
  readonly companyId: string;
}

const begin: IntervalCursor = {
  after: null,
  pages: 0,
  readings: 0,
  written: { inserted: 0, changed: 0, rejected: 0 },
  failed: 0,
  error: null,
};

/** Reads everything that the service has of a company. A resource that fails does not keep the others from it. */
export async function backfillCompany({ runId, companyId }: CompanyBackfill): Promise<void> {
  let current: CompanyResource | null = null;
  setHandler(companyProgress, () => ({ companyId, resource: current }));
  for (const resource of companyResources) {
    current = resource;
    try {
      if (resource === 'intervals') await readIntervals(runId, companyId);
      else await backfilling.backfillListing({ runId, companyId, resource });
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      await noting.failRun({ runId, companyId, resource, error: reasonOf(error) });
    }
  }
  current = null;
}

async function readIntervals(runId: string, companyId: string): Promise<void> {
  let cursor = begin;
  for (let done = false; !done; ) {
    ({ cursor, done } = await backfilling.backfillIntervals({ runId, companyId, cursor }));
  }
}

export function reasonOf(error: ActivityFailure): string {
  const { cause } = error;
  return cause instanceof ApplicationFailure
    ? `${cause.type}: ${cause.message}`
    : String(cause ?? error.message);
}
