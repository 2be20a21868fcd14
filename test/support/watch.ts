import type { Client } from '@temporalio/client';
import { scheduleIds, workflowNames } from '../../contract/names.ts';
import { until } from './poll.ts';

/** Waits for the first look of a worker's watch and prevents further ones, for tests that look themselves. */
export async function pauseWatch(client: Client): Promise<void> {
  const looks = `WorkflowType = '${workflowNames.watch}'`;
  const begun = async () => (await client.workflow.count(looks)).count;
  const ended = async () => (await client.workflow.count(`${looks} and ExecutionStatus != 'Running'`)).count;
  // A worker triggers the first run when it starts. A pause just after the trigger would prevent that run.
  await until('the look of the start is over', async () => (await ended()) > 0, { timeoutMs: 120_000 });
  await client.schedule.getHandle(scheduleIds.watch).pause();
  await until('no look is open', async () => (await begun()) === (await ended()));
}
