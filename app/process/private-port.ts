import { fastify } from 'fastify';
import type { Logger } from 'pino';
import { metricsContentType } from '../../health/registry.ts';
import type { Running } from './running.ts';

/** A part of this process whose health the private port answers for. */
export interface WatchedPart {
  readonly name: 'receiver' | 'worker' | 'console';
  /** Returns why the part needs a restart, if it does. This never depends on another system. */
  alive(): Promise<string | undefined>;
  /** Returns why the part cannot do its work now; undefined if it can. */
  ready(): Promise<string | undefined>;
}

const never = new Promise<void>(() => {});

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
