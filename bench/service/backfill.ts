import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { startBackfill } from '../../app/backfill.ts';
import { connectClient } from '../../app/temporal.ts';
import type { TemporalPlace } from '../../app/temporal-place.ts';
import { type RunState, workflowIds, workflowNames } from '../../contract/names.ts';

/** Runs a work with a client of a namespace, closed at its end. */
export async function withTemporal<T>(
  place: TemporalPlace,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const { client, close } = await connectClient(place);
  try {
    return await work(client);
  } finally {
    await close();
  }
}

/**
 * Backfills the given companies, or all, through the real workflows; returns how many seconds it took.
 * @throws Error when the run ended in another state than complete
 */
export async function runBackfill(client: Client, companies?: readonly string[]): Promise<number> {
  const began = performance.now();
  const runId = await startBackfill(client, companies);
  const state = (await client.workflow.getHandle(workflowIds.backfillAll(runId)).result()) as RunState;
  if (state !== 'complete') throw new Error(`the backfill ended ${state}`);
  return (performance.now() - began) / 1000;
}

/** How long the checks after a run may take. */
const checksWithinMs = 120_000;

/** Waits until the checks of the data that runs started are over. */
export async function checksAreOver(client: Client): Promise<void> {
  const query = `WorkflowType = '${workflowNames.checkData}' and ExecutionStatus = 'Running'`;
  for (const deadline = Date.now() + checksWithinMs; Date.now() < deadline; await delay(100)) {
    const { count } = await client.workflow.count(query);
    if (count === 0) return;
  }
  throw new Error('the checks of the data go on and on');
}
