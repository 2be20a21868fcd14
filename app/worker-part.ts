import { Client } from '@temporalio/client';
import type { DataConverter, WorkerDeploymentVersion } from '@temporalio/common';
import { type NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type Activities, createActivities } from '../activities/create-activities.ts';
import type { ActivityDependencies } from '../activities/dependencies.ts';
import { createNotifier } from '../activities/notifier.ts';
import { backfillBounds, batches, drainBounds } from '../contract/limits.ts';
import { taskQueues } from '../contract/names.ts';
import { attemptPolicy, serverWaits } from '../contract/retry-policy.ts';
import { createFieldCatalogue } from '../db/fields/field-catalogue.ts';
import type { Start } from '../receiver/starts.ts';
import { throughProxies } from '../service/proxy.ts';
import { firstBackfillOf, restartEarlierBackfills } from './backfill.ts';
import type { WorkerObserver } from './metrics.ts';
import type { Running } from './process/running.ts';
import { openService } from './service.ts';
import { activitySettings, type Settings } from './settings/settings.ts';
import { connectClient, ensureOwnSchedules, howEndedOn, starterOf, startSweepOf } from './temporal/client.ts';
import { connectNative } from './temporal/native.ts';
import type { TemporalPlace } from './temporal/place.ts';
import { applySchedules } from './temporal/schedules.ts';
import { workflowBundle as bundleOf } from './temporal/workflow-bundle.ts';
import { openToWork } from './warehouse.ts';

export interface RunningWorker extends Running {
  /**
   * Starts groups over the workers' connection: Temporal's answer carries the first task, so a lone event
   * becomes a row sooner. Undefined from `stop` on, and if the workers have a version, because Temporal would
   * give them the task even if their build was not promoted.
   */
  readonly startHere: Start | undefined;
}

export interface WorkerOverrides {
  readonly workflowBundle?: WorkflowBundleOption;
  readonly dependencies?: Partial<ActivityDependencies>;
  /** Whether the watch, which starts the sweep, and clean-ups are scheduled; by default they are. */
  readonly ownSchedules?: boolean;
}

/** Opens a pool for each kind of work, so that it does not wait for connections of another kind. */
function openPools(settings: Settings, url: string, log: Logger) {
  const open = (connections: number) => openToWork(settings, url, log, connections);
  return {
    warehouse: open(16),
    catchingUp: open(batches.catchUpConnections),
    checks: open(1),
    watching: open(1),
  };
}

function recordAndReport(
  record: Activities['recordGroup'],
  observer: WorkerObserver | undefined,
): Activities['recordGroup'] {
  return async (group) => {
    const recorded = await record(group);
    observer?.onRecorded(recorded);
    return recorded;
  };
}

/** Starts the workers that apply events and run backfills. The schema of the warehouse has to be up to date. */
export async function startWorker(
  options: {
    settings: Settings;
    service: { url: string; apiKey: string };
    databaseUrl: string;
    temporal: TemporalPlace;
    /** Reads the deployment's health; never rejects. */
    readHealth: ActivityDependencies['readHealth'];
    observer?: WorkerObserver | undefined;
    log: Logger;
  },
  { workflowBundle, dependencies, ownSchedules = true }: WorkerOverrides = {},
): Promise<RunningWorker> {
  const { settings, service, databaseUrl, temporal, readHealth, observer, log } = options;
  const [{ client, close }, native, bundle] = await Promise.all([
    connectClient(temporal),
    connectNative(temporal),
    workflowBundle ?? bundleOf(log),
  ]);
  // Applied before any work is taken, because Temporal may not accept the times.
  await applySchedules(client, settings.schedules);
  const pools = openPools(settings, databaseUrl, log);
  const { db } = pools.warehouse;
  await restartEarlierBackfills(client, db);
  const access = openService(settings, service.url, service.apiKey, log, {
    ...(observer === undefined ? {} : { onRequest: observer.onRequest }),
  });
  const catalogue = createFieldCatalogue({
    db,
    onError: ({ message }) => log.warn({ error: message }, 'fields could not be catalogued'),
  });
  const activities = createActivities({
    ...activitySettings(settings),
    ...pools,
    catalogue,
    service: access.client,
    apiVersion: access.apiVersion,
    // Best effort: the watch starts it each minute.
    startSweep: () =>
      startSweepOf(client)().catch((error: Error) =>
        log.warn({ error: error.message }, 'the sweep was not started'),
      ),
    backfillFirst: firstBackfillOf(client, db),
    howEnded: howEndedOn(client),
    readHealth,
    notifier: createNotifier({
      ...settings.notify,
      dispatcher: throughProxies(settings.proxies),
      now: Date.now,
    }),
    wallClock: Date.now,
    onWritten: observer?.onWritten,
    now: () => performance.now(),
    log,
    ...dependencies,
  });
  const workers = await runWorkers({
    ...native,
    workflowBundle: bundle,
    activities: { ...activities, recordGroup: recordAndReport(activities.recordGroup, observer) },
    version: settings.workerVersion,
  });
  observer?.watch({
    warehouses: Object.values(pools),
    service: access.client,
    queues: workers.queues,
    buildId: workers.buildId,
  });
  if (ownSchedules) await ensureOwnSchedules(client);
  let startHere: Start | undefined;
  if (settings.workerVersion === undefined) startHere = starterOf(new Client(native), { eager: true });
  return {
    finished: workers.finished,
    get startHere() {
      return startHere;
    },
    stop: async () => {
      startHere = undefined;
      await workers.stop();
      await Promise.allSettled([
        native.connection.close(),
        close(),
        access.client.close(),
        ...Object.values(pools).map((pool) => pool.close()),
      ]);
    },
  };
}

/** Workflows continue on the newest build, because an older build would write to a newer schema. */
const versioned = (version: WorkerDeploymentVersion) =>
  ({ version, useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' }) as const;

interface Workers {
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
async function runWorkers(options: {
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
      maxConcurrentActivityTaskExecutions: backfillBounds.companiesOfWorker,
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
