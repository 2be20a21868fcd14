import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  type ChildWorkflowFailure,
  isCancellation,
  TerminatedFailure,
} from '@temporalio/workflow';
import type { CompanyStep } from '../../activities/backfill/backfill.ts';
import { backfilling, noting } from '../activity-options.ts';

export interface CompanyBackfill {
  readonly runId: string;
  readonly companyId: string;
  /** Where its meters go on, if an activity for several companies began it. */
  readonly cursor?: CompanyStep['cursor'];
}

/**
 * Reads everything that the service has of a company. A resource that fails does not stop the others.
 * `metersync.runs` has the progress.
 */
export async function backfillCompany({ runId, companyId, cursor = null }: CompanyBackfill): Promise<void> {
  let step: CompanyStep = { done: false, cursor };
  while (!step.done) {
    try {
      step = await backfilling.readCompany({ runId, companyId, cursor: step.cursor });
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      const { done } = await noting.giveUpResource({ runId, companyId, error: reasonOf(error) });
      step = { done, cursor: null };
    }
  }
}

/** Describes why an activity or a workflow failed. */
export function reasonOf({ cause, message }: ActivityFailure | ChildWorkflowFailure): string {
  if (cause instanceof ApplicationFailure) return `${cause.type}: ${cause.message}`;
  if (cause instanceof CancelledFailure) return 'cancelled';
  return cause instanceof TerminatedFailure ? 'terminated' : String(cause ?? message);
}
