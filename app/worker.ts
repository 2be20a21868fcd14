import type { DataConverter, WorkerDeploymentVersion } from '@temporalio/common';
import { type NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { Activities } from '../activities/create-activities.ts';
import { batches, drainBounds } from '../contract/limits.ts';
import { taskQueues } from '../contract/names.ts';
import { attemptPolicy, serverWaits } from '../contract/retry-policy.ts';

/** Workflows continue on the newest build, because an older build would write to a newer schema. */
const versioned = (version: WorkerDeploymentVersion) =>
  ({ version, useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' }) as const;

export interface Workers {
  /** Settles when all workers have stopped; rejects when a worker failed. */
  readonly finished: Promise<void>;
  /** The build id of the workflows, as Temporal shows it. */
  readonly buildId: string;
  readonly queues: readonly { readonly queue: string; runs(): boolean }[];
  stop(): Promise<void>;
}

/**
 * Runs a worker each for events and catch-up, backfills, checks, and the watch, on queues of their own, so
 * that none delays another. A fixed number of slots is predictable on a small machine.
 */
export async function runWorkers(options: {
  connection: NativeConnection;
  namespace: string;
  dataConverter: DataConverter;
  workflowBundle: WorkflowBundleOption;
  activities: Activities;
  /** Undefined if Temporal does not distinguish versions of the workers. */
  version: WorkerDeploymentVersion | undefined;
}): Promise<Workers> {
  const { connection, namespace, dataConverter, workflowBundle, activities, version } = options;
  const common = {
    connection,
    namespace,
    dataConverter,
    ...(version === undefined ? {} : { workerDeploymentOptions: versioned(version) }),
    // Shorter than the pause between heartbeats, so that none is held back.
    maxHeartbeatThrottleInterval: attemptPolicy.heartbeatEveryMs / 2,
    ...serverWaits.workerStop,
  };
  const withWorkflows = { ...common, workflowBundle, activities };
  const workers = await Promise.all([
    Worker.create({
      ...withWorkflows,
      taskQueue: taskQueues.events,
      maxCachedWorkflows: 200,
      maxConcurrentWorkflowTaskExecutions: 20,
      // They record groups of events, and read the records of some.
      maxConcurrentLocalActivityExecutions: drainBounds.recordings + drainBounds.atOnce,
      maxConcurrentActivityTaskExecutions: 20,
    }),
    Worker.create({
      ...withWorkflows,
      taskQueue: taskQueues.backfill,
      maxCachedWorkflows: 100,
      maxConcurrentWorkflowTaskExecutions: 10,
      maxConcurrentActivityTaskExecutions: 10,
    }),
    Worker.create({
      ...common,
      activities: { checkData: activities.checkData },
      taskQueue: taskQueues.checks,
      maxConcurrentActivityTaskExecutions: batches.companiesChecked,
      maxConcurrentActivityTaskPolls: 1,
    }),
    Worker.create({
      ...common,
      activities: { look: activities.look },
      taskQueue: taskQueues.watch,
      maxConcurrentActivityTaskExecutions: 2,
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
  // Callers that wait get the error; a failure while everything stops must not be an unhandled rejection.
  finished.catch(() => {});
  const queues = workers.map((worker) => ({
    queue: worker.options.taskQueue,
    runs: () => worker.getState() === 'RUNNING',
  }));
  return { finished, buildId: version?.buildId ?? workers[0]?.options.buildId ?? '', queues, stop };
}
