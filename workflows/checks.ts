import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { ParentClosePolicy, startChild } from '@temporalio/workflow';
import type { DataCheck } from '../activities/checks.ts';
import { taskQueues, workflowIds } from '../contract/names.ts';
import { checking } from './activity-options.ts';

/** Checks the data of a run: opens and closes issues in `ops.data_issues`. */
export async function checkData(input: DataCheck): Promise<void> {
  await checking.checkData(input);
}

/** Starts the checks of a run that has ended. A run that was reset ends twice, so they may be running. */
export async function startChecks(input: DataCheck): Promise<void> {
  try {
    await startChild(checkData, {
      workflowId: workflowIds.checkData(input.runId),
      taskQueue: taskQueues.backfill,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      args: [input],
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
