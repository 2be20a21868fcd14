import { randomUUID } from 'node:crypto';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { Priority } from '@temporalio/common';
import { type RunState, taskQueues, workflowIds, workflowNames } from '../contract/names.ts';
import { chooseCompanies } from '../db/backfill/chosen-companies.ts';
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
  await startRun(client, runId, chosen === undefined ? {} : chosenFirst);
  return runId;
}

/** Makes the function that starts a company's first backfill, whose id is the company's: only one runs. */
export function firstBackfillOf(client: Client, db: Database): (companyId: string) => Promise<void> {
  return async (companyId) => {
    await chooseCompanies(db, companyId, [companyId]);
    try {
      await startRun(client, companyId);
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  };
}

/** Starts a reconcile of all companies, next to the scheduled ones; returns its run id. */
export async function startReconcile(client: Client): Promise<string> {
  const runId = randomUUID();
  await client.workflow.start(workflowNames.reconcile, {
    workflowId: workflowIds.reconcile(runId),
    taskQueue: taskQueues.backfill,
    args: [{ runId }],
  });
  return runId;
}

async function startRun(client: Client, runId: string, priority: Priority = {}): Promise<void> {
  await client.workflow.start(workflowNames.backfillAll, {
    workflowId: workflowIds.backfillAll(runId),
    taskQueue: taskQueues.backfill,
    priority,
    args: [{ runId }],
  });
}

/** Returns the workflow of a run that was started by hand. The run has no row before a worker begins it. */
export async function workflowOfRun(client: Client, runId: string): Promise<string | undefined> {
  for (const workflowId of [workflowIds.backfillAll(runId), workflowIds.reconcile(runId)]) {
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
