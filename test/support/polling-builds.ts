import type { Client } from '@temporalio/client';
import { taskQueues } from '../../contract/names.ts';

/** Lists the builds of workers that polled for workflow tasks of events in the last minutes. */
export async function pollingBuilds(client: Client): Promise<readonly string[]> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueues.events },
    taskQueueType: 1,
  });
  return (pollers ?? []).flatMap(({ deploymentOptions }) => deploymentOptions?.buildId ?? []);
}
