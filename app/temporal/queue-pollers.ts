import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { taskQueues } from '../../contract/names.ts';

const { TaskQueueType, WorkerVersioningMode } = proto.temporal.api.enums.v1;

export interface QueuePollers {
  /** Whether a worker of the queue is running, even if its slots are all in use. */
  readonly polled: boolean;
  /** The workers that Temporal gives its tasks to, if none of them polls; otherwise null. */
  readonly absent: string | null;
}

const { TASK_QUEUE_TYPE_ACTIVITY: activities, TASK_QUEUE_TYPE_WORKFLOW: workflows } = TaskQueueType;

/**
 * Reads who polled a queue in the last five minutes. A worker without a free slot still polls for workflow
 * tasks. The queue of checks has none, so the watch, in the same process, stands for its worker.
 */
export async function readPollers(client: Client, queue: keyof typeof taskQueues): Promise<QueuePollers> {
  const describe = async (name: keyof typeof taskQueues, taskQueueType: number) =>
    await client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueues[name] },
      taskQueueType,
    });
  const answers = await Promise.all([
    describe(queue, activities),
    queue === 'checks' ? describe('watch', activities) : describe(queue, workflows),
  ]);
  const pollers = answers.flatMap((answer) => answer.pollers ?? []);
  const [current = null] = answers.flatMap(
    ({ versioningInfo }) => versioningInfo?.currentDeploymentVersion?.buildId || [],
  );
  const versioned = pollers.filter(
    ({ deploymentOptions }) =>
      deploymentOptions?.workerVersioningMode === WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED,
  );
  const isServed =
    current === null
      ? versioned.length < pollers.length
      : versioned.some(({ deploymentOptions }) => deploymentOptions?.buildId === current);
  return {
    polled: pollers.length > 0,
    absent: isServed || pollers.length === 0 ? null : current === null ? 'no build' : `build ${current}`,
  };
}

/** Whether a worker polls a queue. Without a worker, work would wait forever. */
export const workerIsPolling = async (client: Client, queue: keyof typeof taskQueues): Promise<boolean> =>
  (await readPollers(client, queue)).polled;
