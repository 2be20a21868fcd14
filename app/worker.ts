import type { DataConverter } from '@temporalio/common';
import { type NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { Activities } from '../activities/create-activities.ts';
import { taskQueues } from '../contract/names.ts';

/**
 * When a worker stops: time that running activities have to finish, and time until they are forced to end.
 */
const shutdown = { shutdownGraceTime: '5 seconds', shutdownForceTime: '8 seconds' } as const;

/** How old an activity's cursor may be when its worker is killed; pages read since are read again. */
const maxHeartbeatThrottleInterval = '3 seconds';

export interface Workers {
  /** Settles when all have stopped; rejects when one failed. */
  readonly finished: Promise<void>;
  stop(): Promise<void>;
}

/** One company at a time is checked: more would take more of Postgres than events leave. */
const checksAtOnce = 1;

/**
 * Runs one worker for events and catch-up, one for backfills and one for checks of the data, each on its own
 * queue: a long backfill never delays an event, and checks delay neither. The number of slots is fixed, which
 * is predictable beside a receiver and Postgres on a small machine.
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
      connection,
      namespace,
      dataConverter,
      maxHeartbeatThrottleInterval,
      ...shutdown,
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
