import type { AddressInfo } from 'node:net';
import { Client } from '@temporalio/client';
import { createActivities } from '../../activities/create-activities.ts';
import { firstBackfillOf } from '../../app/backfill.ts';
import type { Logger } from '../../app/log.ts';
import type { Running } from '../../app/running.ts';
import { openService } from '../../app/service.ts';
import type { Settings } from '../../app/settings.ts';
import { joinLimit } from '../../app/shared-limit.ts';
import { connectClient, ensureOwnSchedules, howEndedOn, startOf, wakeOf } from '../../app/temporal.ts';
import { connectNative } from '../../app/temporal-native.ts';
import type { TemporalPlace } from '../../app/temporal-place.ts';
import { keepViews } from '../../app/typed-views.ts';
import { openWarehouse } from '../../app/warehouse.ts';
import { runWorkers } from '../../app/worker.ts';
import { catchUpConnections, type RunningWorker } from '../../app/worker-part.ts';
import { limits } from '../../contract/limits.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { systemClock } from '../../receiver/clock.ts';
import { createGroupCommit } from '../../receiver/group-commit.ts';
import { fixedSecrets } from '../../receiver/secrets.ts';
import { buildReceiver } from '../../receiver/server.ts';
import { headerFamilies } from '../../receiver/signature-headers.ts';
import type { Start } from '../../receiver/start-group.ts';
import { createVerifier } from '../../receiver/verify.ts';

/**
 * How the receiver hands events to Temporal: in groups as it really does, or each in a workflow of its own, started
 * at once, which is the simpler way.
 */
export type Grouping = 'groups' | 'one-per-event';

/** The receiver as app/running.ts composes it, with the bounds of a group open to the bench. */
export async function startBenchReceiver(options: {
  readonly temporal: TemporalPlace;
  readonly secret: string;
  readonly grouping: Grouping;
  /** How groups are started where a worker runs in this process. */
  readonly startHere: Start | undefined;
  readonly log: Logger;
}): Promise<Running & { readonly port: number }> {
  const { temporal, secret, grouping, startHere, log } = options;
  const { client, close } = await connectClient(temporal);
  const alone = { groupEventsMax: 1, groupStartsInFlight: Number.POSITIVE_INFINITY };
  const commit = createGroupCommit({
    clock: systemClock,
    log,
    start: startHere ?? startOf(client),
    limits: grouping === 'groups' ? limits : { ...limits, ...alone },
  });
  const receiver = buildReceiver({
    verify: createVerifier({
      secrets: fixedSecrets([secret]),
      families: headerFamilies(),
      now: Date.now,
      toleranceSeconds: 300,
    }),
    accept: (event) => commit.accept(event),
    ready: () => true,
    now: Date.now,
    clock: systemClock,
    log,
  });
  await receiver.listen({ host: '127.0.0.1', port: 0 });
  return {
    port: (receiver.server.address() as AddressInfo).port,
    finished: new Promise(() => {}),
    stop: async () => {
      await Promise.all([receiver.close(), commit.drain()]);
      await close();
    },
  };
}

/**
 * The workers as app/running.ts composes them, on a workflow bundle that was made before. Without a service,
 * catching up is off: nobody is woken and no schedule looks.
 */
export async function startBenchWorkers(options: {
  readonly settings: Settings;
  readonly temporal: TemporalPlace;
  readonly databaseUrl: string;
  readonly bundlePath: string;
  readonly service: { readonly url: string; readonly apiKey: string } | undefined;
  readonly log: Logger;
}): Promise<RunningWorker> {
  const { settings, temporal, databaseUrl, bundlePath, service, log } = options;
  const [{ client, close }, native] = await Promise.all([connectClient(temporal), connectNative(temporal)]);
  const warehouse = openWarehouse(settings, databaseUrl, log, 16);
  const catchingUp = openWarehouse(settings, databaseUrl, log, catchUpConnections);
  const nowhere = { url: 'http://127.0.0.1:9/v2.2', apiKey: 'none' };
  const { url, apiKey } = service ?? nowhere;
  const limit = await joinLimit({
    warehouse: openWarehouse(settings, databaseUrl, log, 1),
    limit: settings.service.maxConcurrency,
    log,
  });
  const access = openService(settings.service, url, apiKey, log, limit);
  const views = keepViews({ db: warehouse.db, log });
  const catalogue = createFieldCatalogue({
    db: warehouse.db,
    onNewField: views.changed,
    onError: (error) => log.warn({ err: error }, 'fields could not be catalogued'),
  });
  const activities = createActivities({
    warehouse,
    catchingUp,
    checks: warehouse,
    catalogue,
    service: access.client,
    apiVersion: access.apiVersion,
    companies: [],
    deletesCap: settings.deletesCap,
    journalPayloadDays: settings.journalPayloadDays,
    reconcileDays: settings.reconcileDays,
    checksOff: settings.checksOff,
    wake: service === undefined ? async () => {} : wakeOf(client),
    backfillFirst: service === undefined ? async () => {} : firstBackfillOf(client, warehouse.db),
    howEnded: howEndedOn(client),
    now: () => performance.now(),
    log,
  });
  const workers = await runWorkers({ ...native, workflowBundle: { codePath: bundlePath }, activities });
  if (service !== undefined) await ensureOwnSchedules(client);
  return {
    finished: workers.finished,
    startHere: startOf(new Client(native), { eager: true }),
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
        catchingUp.close(),
      ]);
    },
  };
}
