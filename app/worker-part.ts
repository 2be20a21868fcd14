import { Client } from '@temporalio/client';
import type { WorkflowBundleOption } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type Activities, createActivities } from '../activities/create-activities.ts';
import type { ActivityDependencies } from '../activities/dependencies.ts';
import { createNotifier } from '../activities/notifier.ts';
import { batches } from '../contract/limits.ts';
import { createFieldCatalogue } from '../db/fields/field-catalogue.ts';
import type { Start } from '../receiver/starts.ts';
import { throughProxies } from '../service/proxy.ts';
import { firstBackfillOf } from './backfill.ts';
import type { CoreMetrics } from './metrics/temporal-core.ts';
import type { WorkerObserver } from './metrics/worker.ts';
import { watchPolls } from './process/liveness.ts';
import type { Running } from './process/running.ts';
import { openService } from './service.ts';
import { activitySettings, type Settings } from './settings/settings.ts';
import { connectNative } from './temporal/native.ts';
import type { TemporalPlace } from './temporal/place.ts';
import { applySchedules } from './temporal/schedules.ts';
import { connectClient, ensureOwnSchedules, howEndedOn, startOf, startSweepOf } from './temporal/temporal.ts';
import { workflowBundle as bundleOf } from './temporal/workflow-bundle.ts';
import { openToWork } from './warehouse/warehouse.ts';
import { runWorkers } from './worker.ts';

const noCore: Pick<CoreMetrics, 'read'> = { read: async () => undefined };

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
  /** The time in which the worker of a queue has to begin another poll, in ms. */
  readonly pollWithinMs?: number;
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
    /** Temporal's metrics of this process; without them the states of the workers show whether they live. */
    core?: CoreMetrics | undefined;
    observer?: WorkerObserver | undefined;
    log: Logger;
  },
  { workflowBundle, dependencies, ownSchedules = true, pollWithinMs }: WorkerOverrides = {},
): Promise<RunningWorker> {
  const { settings, service, databaseUrl, temporal, readHealth, core = noCore, observer, log } = options;
  const [{ client, close }, native, bundle] = await Promise.all([
    connectClient(temporal),
    connectNative(temporal),
    workflowBundle ?? bundleOf(log),
  ]);
  // Applied before any work is taken, because Temporal may not accept the times.
  await applySchedules(client, settings.schedules);
  const pools = openPools(settings, databaseUrl, log);
  const { db } = pools.warehouse;
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
  const liveness = watchPolls({
    workers: workers.queues,
    core,
    now: () => performance.now(),
    withinMs: pollWithinMs,
  });
  observer?.watch({
    warehouses: Object.values(pools),
    service: access.client,
    liveness,
    buildId: workers.buildId,
  });
  if (ownSchedules) await ensureOwnSchedules(client);
  let startHere: Start | undefined;
  if (settings.workerVersion === undefined) startHere = startOf(new Client(native), { eager: true });
  return {
    finished: workers.finished,
    get startHere() {
      return startHere;
    },
    stop: async () => {
      startHere = undefined;
      await workers.stop();
      await catalogue.close();
      await Promise.allSettled([
        native.connection.close(),
        close(),
        access.client.close(),
        ...Object.values(pools).map((pool) => pool.close()),
      ]);
    },
  };
}
