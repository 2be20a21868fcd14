import { randomUUID } from 'node:crypto';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { Priority } from '@temporalio/common';
import { type RunState, taskQueues, workflowIds, workflowNames } from '../contract/names.ts';
import { chooseCompanies } from '../db/backfill/run-companies.ts';
import { runsUnderWay } from '../db/backfill/run-end.ts';
import type { Database } from '../db/connection/connect.ts';

/**
 * Priority of the runs of companies that somebody chose: their reads take the next free slot. With Temporal's
 * default, 3, they would wait behind full runs and the first backfills of new companies.
 */
const chosenFirst: Priority = { priorityKey: 1 };

/** Starts a backfill of all companies, or of one or more chosen companies; returns its run id. */
export async function startBackfill(
  client: Client,
  chosen?: { readonly db: Database; readonly companies: readonly string[] },
): Promise<string> {
  const runId = randomUUID();
  if (chosen !== undefined) await chooseCompanies(chosen.db, runId, chosen.companies);
  const priority = chosen === undefined ? {} : chosenFirst;
  await start(client, workflowIds.backfill(runId), runId, priority);
  return runId;
}

/** Makes the function that starts a company's first backfill, whose id is the company's: only one runs. */
export function firstBackfillOf(client: Client, db: Database): (companyId: string) => Promise<void> {
  return async (companyId) => {
    await chooseCompanies(db, companyId, [companyId]);
    const workflowId = workflowIds.backfill(companyId);
    await start(client, workflowId, companyId).catch(ignoring(WorkflowExecutionAlreadyStartedError));
  };
}

/** Starts a reconcile of all companies, next to the scheduled ones; returns its run id. */
export async function startReconcile(client: Client): Promise<string> {
  const runId = randomUUID();
  await client.workflow.start(workflowNames.backfillUpdates, {
    workflowId: workflowIds.reconcile(runId),
    taskQueue: taskQueues.backfill,
    args: [{ runId }],
  });
  return runId;
}

async function start(
  client: Client,
  workflowId: string,
  runId: string,
  priority: Priority = {},
): Promise<void> {
  await client.workflow.start(workflowNames.backfill, {
    workflowId,
    taskQueue: taskQueues.backfill,
    priority,
    args: [{ runId }],
  });
}

/** The workflows of version 0.2 that read companies. */
const earlier = ['backfillAll', 'backfillCompany', 'reconcile'];

/**
 * Ends backfills that a worker of version 0.2 began, and starts each again as a workflow of this version. It goes on
 * with the parts that the run has not finished. The next reconcile replaces an earlier one. Removed in version 0.4.
 */
export async function restartEarlierBackfills(client: Client, db: Database): Promise<void> {
  const types = earlier.map((type) => `'${type}'`).join(', ');
  const query = `ExecutionStatus = 'Running' and WorkflowType in (${types})`;
  const runs = new Map((await runsUnderWay(db)).map(({ runId, workflowId }) => [workflowId, runId]));
  for await (const { workflowId, runId: execution, type } of client.workflow.list({ query })) {
    await client.workflow
      .getHandle(workflowId, execution)
      .terminate('metersync 0.3 replaces this workflow')
      .catch(ignoring(WorkflowNotFoundError));
    const runId = runs.get(workflowId) ?? /^backfill-run\/([\da-f-]{36})$/.exec(workflowId)?.[1];
    if (type === 'backfillAll' && runId !== undefined)
      await start(client, workflowId, runId).catch(ignoring(WorkflowExecutionAlreadyStartedError));
  }
}

/** Ignores the failure of a step that another worker did at the same time. */
const ignoring =
  (expected: new (...args: never[]) => Error) =>
  (error: unknown): void => {
    if (!(error instanceof expected)) throw error;
  };

/** Returns the workflow of a run that was started by hand. The run has no row before a worker begins it. */
export async function workflowOfRun(client: Client, runId: string): Promise<string | undefined> {
  for (const workflowId of [workflowIds.backfill(runId), workflowIds.reconcile(runId)]) {
    try {
      await client.workflow.getHandle(workflowId).describe();
      return workflowId;
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
  return undefined;
}

/** Waits for a run to end and returns its state; undefined if Temporal cannot say. Never rejects. */
export async function runEnd(client: Client, workflowId: string): Promise<RunState | undefined> {
  try {
    return await client.workflow.getHandle(workflowId).result();
  } catch (error) {
    return error instanceof WorkflowFailedError ? 'failed' : undefined;
  }
}
