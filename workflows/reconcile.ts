import {
  ActivityFailure,
  CancellationScope,
  continueAsNew,
  isCancellation,
  uuid4,
} from '@temporalio/workflow';
import { backfillBounds } from '../contract/limits.ts';
import { type ReconciledResource, type RunState, reconciledResources } from '../contract/names.ts';
import { noting, recurring } from './activity-options.ts';
import { reasonOf } from './backfill/company.ts';
import { someAtOnce } from './backfill/some-at-once.ts';
import { startChecks } from './start-checks.ts';

export interface ReconcileInput {
  /** Absent when a schedule starts it. */
  readonly runId?: string;
  /** Set when a long run continues as new: the last company read, and the resources that are still read. */
  readonly after?: { readonly companyId: string; readonly resources: readonly ReconciledResource[] };
}

/** Reads recent updates of all companies; leaves resources whose filter is ignored to the full backfill. */
export async function reconcile(input: ReconcileInput = {}): Promise<RunState> {
  const runId = input.runId ?? uuid4();
  let resources = input.after?.resources ?? reconciledResources;
  const read = async (companyId: string): Promise<void> => {
    if (resources.length === 0) return;
    try {
      // `vain` is the name in results of version 0.1.0, which a history of a run under way holds.
      const { unsupportedFilters, vain = [] } = await recurring.reconcileCompany({
        runId,
        companyId,
        resources,
      });
      const skipped = unsupportedFilters ?? vain;
      resources = resources.filter((resource) => !skipped.includes(resource));
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      const key = { runId, companyId, resource: null, kind: 'reconcile' } as const;
      for (const resource of resources) await noting.failRun({ ...key, resource, error: reasonOf(error) });
    }
  };
  try {
    if (input.after === undefined) await noting.beginReconcile({ runId });
    const { companiesAtOnce, companiesPerRun } = backfillBounds;
    const ids = await noting.companiesAfter({
      after: input.after?.companyId ?? null,
      limit: companiesPerRun,
    });
    await someAtOnce(ids, companiesAtOnce, read);
    const last = ids.at(-1);
    if (last !== undefined && ids.length === companiesPerRun) {
      await continueAsNew<typeof reconcile>({ runId, after: { companyId: last, resources } });
    }
    const state = await noting.concludeRun({ runId });
    await startChecks({ runId, kinds: ['bills', 'connections'] });
    return state;
  } catch (error) {
    if (!isCancellation(error)) throw error;
    const key = { runId, companyId: null, resource: null, kind: 'reconcile' } as const;
    await CancellationScope.nonCancellable(() => noting.failRun({ ...key, error: 'cancelled' }));
    throw error;
  }
}
