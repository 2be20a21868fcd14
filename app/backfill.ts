import { randomUUID } from 'node:crypto';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { queryNames, type RunState, taskQueues, workflowIds, workflowNames } from '../contract/names.ts';
import type { BackfillProgress } from '../workflows/backfill-all.ts';

export { type CompanyProgress, type RunProgress, readRunProgress } from '../db/read/run-progress.ts';

/** A worker that is busy answers later; then the number is left out. */
const answerWithinMs = 3_000;

/** Starts a backfill of the given companies, or of all; returns its run id. */
export async function startBackfill(client: Client, companies?: readonly string[]): Promise<string> {
  const runId = randomUUID();
  await client.workflow.start(workflowNames.backfillAll, {
    workflowId: workflowIds.backfillAll(runId),
    taskQueue: taskQueues.backfill,
    args: [companies === undefined ? { runId } : { runId, companies }],
  });
  return runId;
}

/** Makes the function that starts the first backfill of a company, whose run has the company's id; one runs at a time. */
export function firstBackfillOf(client: Client): (companyId: string) => Promise<void> {
  return async (companyId) => {
    try {
      await client.workflow.start(workflowNames.backfillAll, {
        workflowId: workflowIds.backfillAll(companyId),
        taskQueue: taskQueues.backfill,
        args: [{ runId: companyId, companies: [companyId] }],
      });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  };
}

/** Whether Temporal knows the run: it has no row before a worker begins it. */
export async function runIsStarted(client: Client, runId: string): Promise<boolean> {
  try {
    await client.workflow.getHandle(workflowIds.backfillAll(runId)).describe();
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/** How a run ended, once it has; undefined where Temporal cannot say: a schedule's run has another id. Never rejects. */
export async function runEnd(client: Client, runId: string): Promise<RunState | undefined> {
  try {
    return await client.workflow.getHandle(workflowIds.backfillAll(runId)).result();
  } catch (error) {
    return error instanceof WorkflowFailedError ? 'failed' : undefined;
  }
}

/** How many companies a run was asked to read; null for all, and where no worker can say. */
export async function chosenCompanies(client: Client, runId: string): Promise<number | null> {
  const handle = client.workflow.getHandle(workflowIds.backfillAll(runId));
  try {
    const { chosen } = await client.withDeadline(Date.now() + answerWithinMs, () =>
      handle.query<BackfillProgress>(queryNames.progress),
    );
    return chosen;
  } catch {
    return null;
  }
}

/** Temporal's TASK_QUEUE_TYPE_ACTIVITY. */
const typeActivity = 2;

/** Whether a worker takes work of a queue, as each takes activities: without one, it would wait for ever. */
export async function workerIsPolling(
  client: Client,
  queue: keyof typeof taskQueues = 'backfill',
): Promise<boolean> {
  const answer = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueues[queue] },
    taskQueueType: typeActivity,
  });
  return (answer.pollers?.length ?? 0) > 0;
}
