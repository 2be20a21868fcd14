import type { Client } from '@temporalio/client';
import { scheduleIds, workflowNames } from '../../contract/names.ts';
import { until } from './poll.ts';

/** Lets a worker's first look end, and no other begin: for tests that look themselves, or count workflows. */
export async function pauseWatch(client: Client): Promise<void> {
  const looks = `WorkflowType = '${workflowNames.watch}'`;
  const begun = async () => (await client.workflow.count(looks)).count;
  const ended = async () => (await client.workflow.count(`${looks} and ExecutionStatus != 'Running'`)).count;
  // A pause just after the trigger of the start would take its place.
  await until('the look of the start is over', async () => (await ended()) > 0, { timeoutMs: 120_000 });
  await client.schedule.getHandle(scheduleIds.watch).pause();
  await until('no look is open', async () => (await begun()) === (await ended()));
}
