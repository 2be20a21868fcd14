import { fastify } from 'fastify';
import type { Logger } from 'pino';
import { monitorPolicy } from '../../contract/retry-policy.ts';

import type { Health } from '../../health/measured.ts';
import { createMetrics, metricsContentType, observeDeployment } from '../../health/registry.ts';
import { remember } from '../../receiver/clock.ts';
import type { WorkerParts } from '../metrics.ts';
import {
  type CoreMetrics,
  observeProcess,
  observeReceiver,
  observeWorker,
  placeCoreMetrics,
  type ReceiverObserver,
  type WatchedPart,
  type WorkerObserver,
  withCoreMetrics,
} from '../metrics.ts';
import type { Settings } from '../settings/settings.ts';
import type { Running } from './running.ts';

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
  let queues: WorkerParts['queues'] | undefined;
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
      alive: async () => stoppedQueues(queues),
      ready: async () => {
        if (queues === undefined) return 'it waits for Temporal or for the warehouse';
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
    ? String((await import('../../db/migrate/migrations.ts')).knownMigrations().at(-1)?.number)
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
          ({ queues, buildId } = begun);
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

function stoppedQueues(queues: WorkerParts['queues'] = []): string | undefined {
  const stopped = queues.filter(({ runs }) => !runs()).map(({ queue }) => queue);
  return stopped.length === 0 ? undefined : `it no longer polls ${stopped.join(', ')}`;
}

export const never = new Promise<void>(() => {});

/**
 * Serves `/metrics`, `/healthz` and `/readyz`, only for monitors: unlike the receiver it says why not.
 * @throws Error if the port is taken
 */
export async function servePrivately(options: {
  readonly at: { readonly host: string; readonly port: number };
  readonly parts: readonly WatchedPart[];
  readonly metrics: () => Promise<string>;
  readonly log: Logger;
}): Promise<Running & { readonly url: string }> {
  const { at, parts, metrics, log } = options;
  const app = fastify({ logger: false, forceCloseConnections: true });
  app.setErrorHandler((error, _request, reply) => {
    log.error({ err: error }, 'the metrics port failed');
    reply.code(500).send({ error: 'Internal Server Error' });
  });
  app.get('/metrics', async (_request, reply) => reply.type(metricsContentType).send(await metrics()));
  app.get('/healthz', async (_request, reply) => {
    const dead = await reasons(parts, (part) => part.alive());
    return reply
      .code(dead === undefined ? 200 : 503)
      .send({ status: dead === undefined ? 'ok' : 'dead', ...dead });
  });
  app.get('/readyz', async (_request, reply) => {
    const unready = await reasons(parts, (part) => part.ready());
    return reply
      .code(unready === undefined ? 200 : 503)
      .send({ status: unready === undefined ? 'ready' : 'not ready', ...unready });
  });
  const url = await app.listen(at);
  return { url, finished: never, stop: () => app.close() };
}

/** Collects why parts are not well, by their name; undefined if all are well. */
async function reasons(
  parts: readonly WatchedPart[],
  ask: (part: WatchedPart) => Promise<string | undefined>,
): Promise<{ readonly why: Readonly<Record<string, string>> } | undefined> {
  const answers = await Promise.all(parts.map(async (part) => [part.name, await ask(part)] as const));
  const why = answers.flatMap(([name, reason]) => (reason === undefined ? [] : [[name, reason] as const]));
  return why.length === 0 ? undefined : { why: Object.fromEntries(why) };
}

/** Says why a server cannot listen, and which setting to change; undefined if the error has another reason. */
export function whyNotListening(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
  server: 'RECEIVER' | 'CONSOLE' | 'METRICS',
): string | undefined {
  const { code } = error as { code?: unknown };
  if (code === 'EADDRINUSE') return `port ${port} of ${host} is taken: set ${server}_PORT to a free port`;
  if (code === 'EADDRNOTAVAIL') return `${host} is not an address of this machine: correct ${server}_HOST`;
  return undefined;
}
