import type { Logger } from 'pino';
import { monitorPolicy } from '../../contract/retry-policy.ts';

import type { Health } from '../../health/measured.ts';
import { createMetrics, observeDeployment } from '../../health/registry.ts';
import { remember } from '../../receiver/clock.ts';
import { observeProcess } from '../metrics/process.ts';
import { observeReceiver, type ReceiverObserver } from '../metrics/receiver.ts';
import { type CoreMetrics, placeCoreMetrics, withCoreMetrics } from '../metrics/temporal-core.ts';
import { observeWorker, type WorkerObserver } from '../metrics/worker.ts';
import type { Settings } from '../settings/settings.ts';
import type { Liveness } from './liveness.ts';
import { servePrivately, type WatchedPart } from './private-port.ts';
import type { Running } from './running.ts';
import { whyNotListening } from './why-not-listening.ts';

/** The observers of the parts of this process, and the private port that shows what they measure. */
export interface Monitor {
  /** Each is undefined if the process has no such part. */
  readonly receiver: ReceiverObserver | undefined;
  readonly worker: WorkerObserver | undefined;
  /** Temporal's own metrics; undefined without a worker. */
  readonly core: CoreMetrics | undefined;
  /** Opens the private port; undefined if that is not possible, which the log says. */
  serve(): Promise<(Running & { readonly url: string }) | undefined>;
}

/** Observes the `parts` of a process; `console` only if it is the only part. `readHealth` never rejects. */
export async function createMonitor(options: {
  readonly settings: Settings['metrics'];
  readonly parts: readonly WatchedPart['name'][];
  readonly readHealth: () => Promise<Health>;
  readonly log: Logger;
}): Promise<Monitor> {
  const { settings, parts, log } = options;
  const metrics = createMetrics();
  const works = parts.includes('worker');
  const readHealth = remember(options.readHealth, monitorPolicy.healthForMs, () => performance.now());
  const core = works ? await placeCoreMetrics() : undefined;
  let isReady: (() => Promise<boolean>) | undefined;
  let liveness: Liveness | undefined;
  let buildId = '';
  const all: Readonly<Record<WatchedPart['name'], WatchedPart>> = {
    receiver: {
      name: 'receiver',
      alive: async () => undefined,
      ready: async () => {
        if (isReady === undefined) return 'it has not started';
        return (await isReady().catch(() => false))
          ? undefined
          : 'Temporal does not answer, or does not accept events';
      },
    },
    worker: {
      name: 'worker',
      alive: async () => deafQueues(await liveness?.queues()),
      ready: async () => {
        if (liveness === undefined) return 'it waits for Temporal or for the warehouse';
        const { warehouse, temporal } = await readHealth();
        return absenceOf(temporal) ?? absenceOf(warehouse);
      },
    },
    // The console listens before its monitor does, and has a page for servers that are away.
    console: { name: 'console', alive: async () => undefined, ready: async () => undefined },
  };
  const watched = parts.map((part) => all[part]);
  // A receiver has no warehouse, so it does not load the code that reads one.
  const schema = works
    ? String((await import('../../db/migrate/known-migrations.ts')).knownMigrations().length)
    : '';
  observeProcess(metrics, watched, { schema, buildId: () => buildId });
  if (works) observeDeployment(metrics, readHealth);
  return {
    receiver: parts.includes('receiver')
      ? observeReceiver(metrics, ({ ready }) => {
          isReady = ready;
        })
      : undefined,
    worker: works
      ? observeWorker(metrics, (begun) => {
          ({ liveness, buildId } = begun);
        })
      : undefined,
    core,
    async serve() {
      const text = core === undefined ? metrics.asText : withCoreMetrics(metrics, core);
      try {
        return await servePrivately({ at: settings, parts: watched, metrics: text, log });
      } catch (error) {
        const why = whyNotListening(error, settings, 'METRICS');
        if (why === undefined) throw error;
        // Work continues: nobody gains from a worker that stops because it cannot be watched.
        log.error(`metrics are not served, because ${why}`);
        return undefined;
      }
    },
  };
}

const absenceOf = (side: Health['warehouse'] | Health['temporal']): string | undefined =>
  'away' in side ? side.away : undefined;

function deafQueues(queues: Awaited<ReturnType<Liveness['queues']>> | undefined): string | undefined {
  const deaf = queues?.filter(({ polls }) => !polls).map(({ queue }) => queue) ?? [];
  return deaf.length === 0 ? undefined : `it no longer polls ${deaf.join(', ')}`;
}
