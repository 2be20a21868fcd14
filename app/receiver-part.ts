import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { notifyPolicy } from '../contract/retry-policy.ts';
import { reportRefused } from '../receiver/answers.ts';
import { systemClock } from '../receiver/clock.ts';
import { createGroupCommit } from '../receiver/group-commit.ts';
import { httpLimits } from '../receiver/http-limits.ts';
import { type ConfiguredSecrets, fileSecrets, fixedSecrets } from '../receiver/secrets.ts';
import { buildReceiver, type Receiver } from '../receiver/server.ts';
import { type Start, watchStarts } from '../receiver/starts.ts';
import { createVerifier, headerFamilies } from '../receiver/verify.ts';
import type { ReceiverObserver } from './metrics.ts';
import { whyNotListening } from './process/monitor.ts';
import type { Running, ServerWait } from './process/running.ts';
import type { Settings } from './settings/settings.ts';
import { lazyClient, starterOf } from './temporal/client.ts';
import type { TemporalPlace } from './temporal/place.ts';

const never = new Promise<void>(() => {});

/** Reads the signing secrets from the settings or their file. Throws an Error that quotes no secret. */
export function secretsOf(settings: Settings['webhooks'], log: Logger): ConfiguredSecrets {
  if (settings.secretsFile !== undefined) {
    return fileSecrets({ path: settings.secretsFile, now: systemClock.now, log });
  }
  return fixedSecrets(settings.secrets);
}

/** Starts the HTTP edge. It only needs Temporal, and answers 503 until Temporal answers the first time. */
export async function startReceiver(options: {
  settings: Pick<Settings, 'receiver' | 'webhooks'>;
  secrets: ConfiguredSecrets;
  temporal: TemporalPlace;
  temporalWait: Pick<ServerWait, 'isThere'>;
  /** Returns how to start groups while a worker runs in this process. */
  startHere?: () => Start | undefined;
  refusedEveryMs?: number;
  observer?: ReceiverObserver | undefined;
  log: Logger;
}): Promise<Running & { readonly url: string; readonly receiver: Receiver }> {
  const { settings, secrets, temporal, temporalWait, startHere, observer, log } = options;
  const { refusedEveryMs = notifyPolicy.refusedEveryMs } = options;
  const { client, close } = lazyClient(temporal);
  const startAnywhere = starterOf(client);
  const starts = watchStarts((request) => (startHere?.() ?? startAnywhere)(request), systemClock.now);
  const commit = createGroupCommit({
    clock: systemClock,
    log,
    start: starts.start,
    ...(observer === undefined ? {} : { onGroup: observer.onGroup }),
  });
  const ready = async () => temporalWait.isThere() && !starts.fail() && (await isReachable(client));
  const receiver = buildReceiver({
    verify: createVerifier({
      secrets,
      families: headerFamilies(settings.webhooks.headerPrefix),
      now: Date.now,
      toleranceSeconds: settings.webhooks.toleranceSeconds,
    }),
    accept: (event, arrivedAt) =>
      temporalWait.isThere() ? commit.accept(event, arrivedAt) : Promise.resolve('unavailable'),
    drain: () => commit.drain(),
    ready,
    now: Date.now,
    clock: systemClock,
    log,
    limits: { ...httpLimits, connectionsMax: connectionsMaxFor() },
    ...(observer === undefined ? {} : { onAnswer: observer.onAnswer }),
  });
  observer?.watch({ receiver, commit, secrets, ready });
  const endReports = reportRefused({
    counters: receiver.counters,
    start: startAnywhere,
    clock: systemClock,
    log,
    name: randomUUID(),
    everyMs: refusedEveryMs,
  });
  const url = await listen(receiver, settings.receiver);
  return {
    url: `${url}/webhooks`,
    receiver,
    finished: never,
    stop: async () => {
      await receiver.close();
      await endReports();
      await close();
    },
  };
}

async function listen(receiver: Receiver, at: Settings['receiver']): Promise<string> {
  try {
    return await receiver.listen(at);
  } catch (error) {
    const why = whyNotListening(error, at, 'RECEIVER');
    if (why !== undefined) throw new Error(why);
    throw error;
  }
}

/** Whether Temporal answers and allows the namespace: a key or certificate may expire meanwhile. */
async function isReachable(client: Client): Promise<boolean> {
  const { namespace } = client.options;
  await client.withDeadline(Date.now() + httpLimits.readyWithinMs, () =>
    client.workflowService.describeNamespace({ namespace }),
  );
  return true;
}

/**
 * Returns how many sockets a receiver accepts: at most half of the files that this process may open. Beyond
 * the limit of files the system closes new sockets without notice, so no socket could make room for another.
 */
export function connectionsMaxFor(filesMax: number = openFilesMax()): number {
  return Math.min(httpLimits.connectionsMax, Math.floor(filesMax / 2));
}

/** Returns how many files and sockets this process may open; Infinity without a limit, or if it is not known. */
function openFilesMax(): number {
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | 'unlimited' } };
  };
  const max = userLimits?.open_files?.soft;
  return typeof max === 'number' ? max : Number.POSITIVE_INFINITY;
}
