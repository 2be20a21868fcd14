import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  type ChildWorkflowFailure,
  isCancellation,
  TerminatedFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { CompanyReading, CompanyStep } from '../../activities/backfill/cursor.ts';
import { backfilling, noting } from '../activity-options.ts';

export interface CompanyBackfill extends CompanyReading {
  /** Whether it may end before the company does. Version 0.1.0 did not say so, and waited for all of it. */
  readonly inParts?: boolean;
}

/**
 * Reads a company slice by slice; `metersync.runs` has the progress. Ends early when its history is long, and
 * the parent starts another workflow: a parent's cancellation would not reach a run that continued as new.
 */
export async function backfillCompany(input: CompanyBackfill): Promise<CompanyStep> {
  const { runId, companyId, cursor = null, inParts = false } = input;
  let step: CompanyStep = { done: false, cursor };
  do {
    try {
      step = await backfilling.readCompany({ runId, companyId, cursor: step.cursor });
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      const { done } = await noting.giveUpResource({ runId, companyId, error: reasonOf(error) });
      step = { done, cursor: null };
    }
  } while (!step.done && !(inParts && workflowInfo().continueAsNewSuggested));
  return step;
}

/** Describes why an activity or a workflow failed. */
export function reasonOf({ cause, message }: ActivityFailure | ChildWorkflowFailure): string {
  if (cause instanceof ApplicationFailure) return `${cause.type}: ${cause.message}`;
  if (cause instanceof CancelledFailure) return 'cancelled';
  return cause instanceof TerminatedFailure ? 'terminated' : String(cause ?? message);
}
