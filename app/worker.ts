import type { DataConverter } from '@temporalio/common';
import { type NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { Activities } from '../activities/create-activities.ts';
import { taskQueues } from '../contract/names.ts';

/** Time that running activities have to finish when a worker is asked to stop, and until it is forced. */
const shutdown = { shutdownGraceTime: '5 seconds', shutdownForceTime: '8 seconds' } as const;

/** How old the cursor of an activity may be when its worker is killed; what it read since is read again. */
const maxHeartbeatThrottleInterval = '3 seconds';

export interface Workers {
  /** Settles when all have stopped; rejects when one failed. */
  readonly finished: Promise<void>;
  stop(): Promise<void>;
}

/** Companies are checked one after the other: more at once would take more of Postgres than is left beside events. */
const checksAtOnce = 1;

/**
 * One worker for events and catching up, one for backfills, one for checks of the data, on queues of their own: a long
 * backfill never delays an event, and checks delay neither. Slots are fixed, as that is predictable beside a receiver and Postgres on a small machine.
 */
export async function runWorkers(options: {
  connection: NativeConnection;
  namespace: string;
  dataConverter: DataConverter;
  workflowBundle: WorkflowBundleOption;
  activities: Activities;
}): Promise<Workers> {
  const { connection, namespace, dataConverter, workflowBundle, activities } = options;
  const common = {
    connection,
    namespace,
    dataConverter,
    workflowBundle,
    activities,
    maxHeartbeatThrottleInterval,
    ...shutdown,
  };
  const workers = await Promise.all([
    Worker.create({
      ...common,
      taskQueue: taskQueues.events,
      maxCachedWorkflows: 200,
      maxConcurrentWorkflowTaskExecutions: 20,
      maxConcurrentLocalActivityExecutions: 10,
      maxConcurrentActivityTaskExecutions: 20,
    }),
    Worker.create({
      ...common,
      taskQueue: taskQueues.backfill,
      maxCachedWorkflows: 100,
      maxConcurrentWorkflowTaskExecutions: 10,
      maxConcurrentActivityTaskExecutions: 10,
    }),
    Worker.create({
      ...{ connection, namespace, dataConverter, maxHeartbeatThrottleInterval, ...shutdown },
      activities: { checkData: activities.checkData },
      taskQueue: taskQueues.checks,
      maxConcurrentActivityTaskExecutions: checksAtOnce,
      maxConcurrentActivityTaskPolls: 1,
    }),
  ]);
  const runs = workers.map((worker) => worker.run());
  const stop = async () => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    await Promise.allSettled(runs);
  };
  const finished = Promise.all(runs).then(
    () => {},
    async (error: unknown) => {
      await stop();
      throw error;
    },
  );
  return { finished, stop };
}
