import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { DeliveredEvent } from '../contract/delivery.ts';
import {
  type AnswerCounters,
  type AnswerReason,
  answerBody,
  answerStatus,
  createAnswerCounters,
} from './answers.ts';
import { type BodyProblem, createBodyReader } from './body.ts';
import { answerClientErrors } from './client-errors.ts';
import type { Clock } from './clock.ts';
import { boundConnections, endConnectionsAtClose } from './connections.ts';
import type { Answer } from './group-commit.ts';
import { type HttpLimits, httpLimits } from './http-limits.ts';
import type { Log } from './log.ts';
import type { Verify } from './verify.ts';

export interface ReceiverDependencies {
  readonly verify: Verify;
  /** Takes a verified event whose request began to come at `arrivedAt`, on `clock`; see group-commit.ts. */
  readonly accept: (event: DeliveredEvent, arrivedAt: number) => Promise<Answer>;
  /** Whether events can be taken, for `GET /readyz`. */
  readonly ready: () => boolean | Promise<boolean>;
  /** Unix milliseconds, for `receivedAt`. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: HttpLimits;
}

declare module 'fastify' {
  interface FastifyRequest {
    arrivedAt: number;
  }
}

export type Receiver = FastifyInstance & { readonly counters: Readonly<AnswerCounters> };

const webhooksPath = '/webhooks';
const noBody = Buffer.alloc(0);

/**
 * Builds the HTTP edge; whoever composes it calls `listen` with one address and `close`.
 *
 * `POST /webhooks` answers 204 when the event is durable (seed 4.1.2), 401 when it is not verified (seed 7), 413, 415
 * and 405 to what is no delivery, 503 with Retry-After when it cannot be taken now. After `close` a new request is
 * answered 503 with `Connection: close`, and events that were taken before get their answer.
 */
export function buildReceiver(dependencies: ReceiverDependencies): Receiver {
  const { clock, log, limits = httpLimits } = dependencies;
  const { counters, count } = createAnswerCounters({ now: () => clock.now(), log });
  const app = fastify({
    ...serverOptions(limits),
    clientErrorHandler: answerClientErrors(count),
    frameworkErrors: (_error, _request, reply) => send(reply, 'not-found'),
  });
  app.server.maxHeadersCount = limits.headersMax;
  boundConnections(app.server, limits, clock);
  const taken = endConnectionsAtClose(app, limits, clock);
  const readBody = createBodyReader(limits);
  const send = (reply: FastifyReply, reason: AnswerReason): void => {
    count(reason);
    // Also to requests from before the close, whose sockets would else be kept for a next one.
    if (taken.closing) reply.header('connection', 'close');
    sendAnswer(reply, answerStatus[reason], limits.retryAfterSeconds);
  };

  app.setErrorHandler((error, _request, reply) => {
    log.error({ err: error }, 'request failed');
    send(reply, 'failed');
  });
  // Without parsers Fastify reads no body of a request that it has no route for.
  app.removeAllContentTypeParsers();
  app.setNotFoundHandler((request, reply) =>
    send(reply, isWebhooksPath(request.url) ? 'method-not-allowed' : 'not-found'),
  );
  app.register(async (scope) => {
    scope.decorateRequest('arrivedAt', 0);
    // The signature covers the bytes, whatever they are called; Fastify would refuse a type that it cannot parse.
    scope.addHook('onRequest', (request, _reply, done) => {
      request.raw.headers['content-type'] = undefined;
      // The sender's patience begins with its request, not with the last byte of the body.
      request.arrivedAt = clock.now();
      done();
    });
    scope.addContentTypeParser('*', (_request, payload, done) => {
      readBody(payload, (body) => done(null, body));
    });
    scope.post(webhooksPath, createWebhookHandler(dependencies, taken, send));
  });
  registerHealth(app, dependencies, taken);
  return app.decorate('counters', counters) as unknown as Receiver;
}

type Taken = ReturnType<typeof endConnectionsAtClose>;

/** Judges the whole request at once; only a verified one has to wait for its answer. */
function createWebhookHandler(
  { verify, accept, now }: ReceiverDependencies,
  taken: Taken,
  send: (reply: FastifyReply, reason: AnswerReason) => void,
): (request: FastifyRequest, reply: FastifyReply) => void {
  const take = (request: FastifyRequest, body: Buffer): AnswerReason | Promise<Answer> => {
    if (taken.closing) return 'closing';
    const verdict = verify(request.raw.rawHeaders, body);
    if (!verdict.verified) return verdict.reason;
    const { id, timestamp, body: text } = verdict;
    const event = { id, timestamp, receivedAt: new Date(now()).toISOString(), body: text };
    return accept(event, request.arrivedAt);
  };
  return (request, reply) => {
    const body = (request.body ?? noBody) as Buffer | BodyProblem;
    if (typeof body === 'string') {
      // Bytes of it may still come, so the socket is of no more use.
      send(reply.header('connection', 'close'), body);
      return;
    }
    const outcome = take(request, body);
    if (typeof outcome === 'string') {
      send(reply, outcome);
      return;
    }
    taken.add();
    outcome
      .then(
        (answer) => send(reply, answer),
        (error) => reply.send(error),
      )
      .finally(() => taken.remove());
  };
}

/** `/healthz`: the process answers. `/readyz`: it can take events. Neither says why not. */
function registerHealth(app: FastifyInstance, { ready, log }: ReceiverDependencies, taken: Taken): void {
  app.get('/healthz', (_request, reply) => {
    reply.send({ status: 'ok' });
  });
  app.get('/readyz', async (_request, reply) => {
    const isReady = !taken.closing && (await isTrue(ready, log));
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready' });
  });
}

async function isTrue(ready: ReceiverDependencies['ready'], log: Log): Promise<boolean> {
  try {
    return await ready();
  } catch (error) {
    log.warn({ err: error }, 'readiness is not known');
    return false;
  }
}

function sendAnswer(reply: FastifyReply, status: number, retryAfterSeconds: number): void {
  reply.code(status);
  if (status === 204) {
    reply.send();
    return;
  }
  if (status === 503) reply.header('retry-after', retryAfterSeconds);
  if (status === 405) reply.header('allow', 'POST');
  reply.header('content-type', 'application/json').send(answerBody(status));
}

function isWebhooksPath(url: string): boolean {
  return url === webhooksPath || url.startsWith(`${webhooksPath}?`);
}

/** All of Node's and Fastify's bounds; http-limits.ts has the reasons. */
function serverOptions(limits: HttpLimits) {
  return {
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    handlerTimeout: limits.handlerTimeoutMs,
    maxRequestsPerSocket: limits.requestsPerSocketMax,
    http: {
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.connectionsCheckMs,
      insecureHTTPParser: false,
      requireHostHeader: true,
    },
    // The answers during a close are ours, with Retry-After.
    return503OnClosing: false,
    exposeHeadRoutes: true,
    logger: false,
  } as const;
}
