import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { createActivities } from '../activities/create-activities.ts';
import { createFieldCatalogue } from '../db/fields/field-catalogue.ts';
import { systemClock } from '../receiver/clock.ts';
import { createGroupCommit } from '../receiver/group-commit.ts';
import { fileSecrets, fixedSecrets, type SecretSource } from '../receiver/secrets.ts';
import { buildReceiver, type Receiver } from '../receiver/server.ts';
import { headerFamilies } from '../receiver/signature-headers.ts';
import { createVerifier } from '../receiver/verify.ts';
import { firstBackfillOf } from './backfill.ts';
import { ensureSchedules } from './schedules.ts';
import { openService } from './service.ts';
import type { Settings } from './settings.ts';
import { joinLimit } from './shared-limit.ts';
import { connectClient, ensureOwnSchedules, isRunningOn, lazyClient, startOf, wakeOf } from './temporal.ts';
import type { TemporalArrival } from './temporal-arrival.ts';
import { connectNative } from './temporal-native.ts';
import type { TemporalPlace } from './temporal-place.ts';
import { keepViews } from './typed-views.ts';
import { openWarehouse } from './warehouse.ts';
import { runWorkers } from './worker.ts';
import { workflowBundle } from './workflow-bundle.ts';

/** A part that runs until it is stopped; `finished` rejects when it fails by itself. */
export interface Running {
  readonly finished: Promise<void>;
  /** Drains: what was accepted is answered or finished or handed over. */
  stop(): Promise<void>;
}

const never = new Promise<void>(() => {});

/** @throws Error saying what is wrong with the configured secrets, without showing any */
export function secretsOf(settings: Settings['webhooks'], log: Logger): SecretSource {
  if (settings.secretsFile !== undefined) {
    return fileSecrets({ path: settings.secretsFile, now: Date.now, log });
  }
  return fixedSecrets(settings.secrets);
}

/**
 * Starts the HTTP edge. It needs Temporal and nothing else: events are taken while Postgres is down. Until Temporal is
 * there for the first time deliveries are answered 503 at once, and the service delivers them again.
 */
export async function startReceiver(options: {
  settings: Settings;
  secrets: SecretSource;
  temporal: TemporalPlace;
  arrival: TemporalArrival;
  log: Logger;
}): Promise<Running & { readonly url: string; readonly receiver: Receiver }> {
  const { settings, secrets, temporal, arrival, log } = options;
  const { client, close } = lazyClient(temporal);
  const commit = createGroupCommit({ clock: systemClock, log, start: startOf(client) });
  const receiver = buildReceiver({
    verify: createVerifier({
      secrets,
      families: headerFamilies(settings.webhooks.headerPrefix),
      now: Date.now,
      toleranceSeconds: settings.webhooks.toleranceSeconds,
    }),
    accept: (event, arrivedAt) =>
      arrival.isThere() ? commit.accept(event, arrivedAt) : Promise.resolve('unavailable'),
    ready: () => arrival.isThere() && isReachable(client),
    now: Date.now,
    clock: systemClock,
    log,
  });
  const url = await listen(receiver, settings.receiver);
  return {
    url: `${url}/webhooks`,
    receiver,
    finished: never,
    stop: async () => {
      await Promise.all([receiver.close(), commit.drain()]);
      await close();
    },
  };
}

async function listen(receiver: Receiver, at: Settings['receiver']): Promise<string> {
  try {
    return await receiver.listen(at);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === 'EADDRINUSE')
      throw new Error(`port ${at.port} of ${at.host} is taken: set RECEIVER_PORT to a free one`);
    if (code === 'EADDRNOTAVAIL')
      throw new Error(`${at.host} is no address of this machine: set RECEIVER_HOST`);
    throw error;
  }
}

async function isReachable(client: Client): Promise<boolean> {
  await client.withDeadline(Date.now() + 2_000, () => client.workflowService.getSystemInfo({}));
  return true;
}

/** A part that is started when Temporal is there, which may be never. */
export function whenThere(arrival: TemporalArrival, start: () => Promise<Running>): Running {
  const started = arrival.arrived.then(start);
  const finished = started.then((part) => part.finished);
  // Whoever waits for it is told; when it fails while all is stopped nobody does.
  finished.catch(() => {});
  return {
    finished,
    stop: async () => {
      await arrival.stop();
      if (!arrival.isThere()) return;
      const [part] = await Promise.allSettled([started]);
      if (part.status === 'fulfilled') await part.value.stop();
    },
  };
}

/** Starts the workers that apply events and run backfills. The warehouse's schema has to be up to date. */
export async function startWorker(options: {
  settings: Settings;
  service: { url: string; apiKey: string };
  databaseUrl: string;
  temporal: TemporalPlace;
  log: Logger;
}): Promise<Running> {
  const { settings, service, databaseUrl, temporal, log } = options;
  const [{ client, close }, native, bundle] = await Promise.all([
    connectClient(temporal),
    connectNative(temporal),
    workflowBundle(log),
  ]);
  const warehouse = openWarehouse(settings, databaseUrl, log, 16);
  const limit = await joinLimit({
    warehouse: openWarehouse(settings, databaseUrl, log, 1),
    limit: settings.service.maxConcurrency,
    log,
  });
  const access = openService(settings.service, service.url, service.apiKey, log, limit);
  const views = keepViews({ db: warehouse.db, log });
  const catalogue = createFieldCatalogue({
    db: warehouse.db,
    onNewField: views.changed,
    onError: (error) => log.warn({ err: error }, 'fields could not be catalogued'),
  });
  const activities = createActivities({
    warehouse,
    catalogue,
    service: access.client,
    apiVersion: access.apiVersion,
    companies: settings.service.companies,
    deletesCap: settings.deletesCap,
    journalPayloadDays: settings.journalPayloadDays,
    reconcileDays: settings.reconcileDays,
    checksOff: settings.checksOff,
    wake: wakeOf(client),
    backfillFirst: firstBackfillOf(client),
    isRunning: isRunningOn(client),
    now: () => performance.now(),
    log,
  });
  const workers = await runWorkers({ ...native, workflowBundle: bundle, activities });
  await ensureOwnSchedules(client);
  if (settings.makeSchedules) await ensureSchedules(client);
  return {
    finished: workers.finished,
    stop: async () => {
      await workers.stop();
      await catalogue.close();
      await views.stop();
      await Promise.allSettled([
        native.connection.close(),
        close(),
        access.client.close(),
        limit.leave(),
        warehouse.close(),
      ]);
    },
  };
}
