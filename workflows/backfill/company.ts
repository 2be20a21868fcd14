import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  type ChildWorkflowFailure,
  isCancellation,
  TerminatedFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { CompanyStep } from '../../activities/backfill/backfill.ts';
import { backfilling, noting } from '../activity-options.ts';

export interface CompanyBackfill {
  readonly runId: string;
  readonly companyId: string;
  /** Where its meters go on, if an activity for several companies or another workflow began it. */
  readonly cursor?: CompanyStep['cursor'];
  /** Whether it may end before the company does: the caller goes on. */
  readonly inParts?: boolean;
}

/**
 * Reads everything that the service has of a company. A resource that fails does not stop the others.
 * `metersync.runs` has the progress.
 *
 * Ends early when its history is long: Temporal allows 51,200 events, those of 200,000 meters. It does not
 * continue as new, as the cancellation of its parent would miss it.
 */
export async function backfillCompany(input: CompanyBackfill): Promise<CompanyStep> {
  const { runId, companyId, cursor = null, inParts = false } = input;
  let step: CompanyStep = { done: false, cursor };
  while (!step.done && !(inParts && workflowInfo().continueAsNewSuggested)) {
    try {
      step = await backfilling.readCompany({ runId, companyId, cursor: step.cursor });
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      const { done } = await noting.giveUpResource({ runId, companyId, error: reasonOf(error) });
      step = { done, cursor: null };
    }
  }
  return step;
}

/** Describes why an activity or a workflow failed. */
export function reasonOf({ cause, message }: ActivityFailure | ChildWorkflowFailure): string {
  if (cause instanceof ApplicationFailure) return `${cause.type}: ${cause.message}`;
  if (cause instanceof CancelledFailure) return 'cancelled';
  return cause instanceof TerminatedFailure ? 'terminated' : String(cause ?? message);
}
