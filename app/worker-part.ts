import { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { createActivities } from '../activities/create-activities.ts';
import { createFieldCatalogue } from '../db/fields/field-catalogue.ts';
import type { Start } from '../receiver/start-group.ts';
import { firstBackfillOf } from './backfill.ts';
import { tellEvents } from './events-told.ts';
import type { Running } from './running.ts';
import { ensureSchedules } from './schedules.ts';
import { openService } from './service.ts';
import type { Settings } from './settings.ts';
import { joinLimit } from './shared-limit.ts';
import { connectClient, ensureOwnSchedules, howEndedOn, startOf, wakeOf } from './temporal.ts';
import { connectNative } from './temporal-native.ts';
import type { TemporalPlace } from './temporal-place.ts';
import { keepViews } from './typed-views.ts';
import { openWarehouse } from './warehouse.ts';
import { runWorkers } from './worker.ts';
import { workflowBundle } from './workflow-bundle.ts';

/**
 * Connections that the catch-up shares. With more, its statements would wait for one another at Postgres, and
 * events for all of them. Fewer cost less: each connection keeps its plans, and records that wait are read
 * together.
 */
export const catchUpConnections = 4;

/** How often the log reports events, when some came. */
const tellEveryMs = 60_000;

export interface RunningWorker extends Running {
  /**
   * Starts groups over the workers' connection: Temporal's answer then carries the first task, and no worker
   * has to poll for it. So a lone event becomes a row sooner. Undefined from the moment of `stop`.
   */
  readonly startHere: Start | undefined;
}

/** Starts the workers that apply events and run backfills. The warehouse's schema has to be up to date. */
export async function startWorker(options: {
  settings: Settings;
  service: { url: string; apiKey: string };
  databaseUrl: string;
  temporal: TemporalPlace;
  log: Logger;
}): Promise<RunningWorker> {
  const { settings, service, databaseUrl, temporal, log } = options;
  const [{ client, close }, native, bundle] = await Promise.all([
    connectClient(temporal),
    connectNative(temporal),
    workflowBundle(log),
  ]);
  const warehouse = openWarehouse(settings, databaseUrl, log, 16);
  const catchingUp = openWarehouse(settings, databaseUrl, log, catchUpConnections);
  const checks = openWarehouse(settings, databaseUrl, log, 1);
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
    catchingUp,
    checks,
    catalogue,
    service: access.client,
    apiVersion: access.apiVersion,
    companies: settings.service.companies,
    deletesCap: settings.deletesCap,
    journalPayloadDays: settings.journalPayloadDays,
    reconcileDays: settings.reconcileDays,
    checksOff: settings.checksOff,
    wake: wakeOf(client),
    backfillFirst: firstBackfillOf(client, warehouse.db),
    howEnded: howEndedOn(client),
    now: () => performance.now(),
    log,
  });
  const eventsLog = tellEvents({ db: warehouse.db, log, everyMs: tellEveryMs });
  const recordGroup: typeof activities.recordGroup = async (group) => {
    const recorded = await activities.recordGroup(group);
    eventsLog.add(recorded);
    return recorded;
  };
  const workers = await runWorkers({
    ...native,
    workflowBundle: bundle,
    activities: { ...activities, recordGroup },
  });
  await ensureOwnSchedules(client);
  if (settings.makeSchedules) await ensureSchedules(client);
  let startHere: Start | undefined = startOf(new Client(native), { eager: true });
  return {
    finished: workers.finished,
    get startHere() {
      return startHere;
    },
    stop: async () => {
      startHere = undefined;
      await workers.stop();
      await eventsLog.stop();
      await catalogue.close();
      await views.stop();
      await Promise.allSettled([
        native.connection.close(),
        close(),
        access.client.close(),
        limit.leave(),
        warehouse.close(),
        catchingUp.close(),
        checks.close(),
      ]);
    },
  };
}
