import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { DeliveredEvent } from '../contract/event.ts';
import type { Log } from '../contract/log.ts';
import {
  type AnswerCounters,
  type AnswerReason,
  answerBody,
  answerClientErrors,
  answerStatus,
  createAnswerCounters,
  endWithAnswer,
} from './answers.ts';
import {
  boundBeforeHeaders,
  boundBodies,
  boundConnections,
  boundUnanswered,
  type Connections,
  endConnectionsAtClose,
} from './bounds.ts';
import { type MonotonicClock, remember } from './clock.ts';
import type { CommitResult } from './group-commit.ts';
import { type HttpLimits, httpLimits } from './http-limits.ts';
import type { Claim, Verify } from './verify.ts';

interface ReceiverDependencies {
  readonly verify: Verify;
  /** Takes a verified event whose headers were complete at `arrivedAt`, on `clock`; see group-commit.ts. */
  readonly accept: (event: DeliveredEvent, arrivedAt: number) => Promise<CommitResult>;
  /** Stops accepting events; ends when every accepted event has its answer. */
  readonly drain: () => Promise<void>;
  /** Whether events can be taken, for `GET /readyz`. */
  readonly ready: () => boolean | Promise<boolean>;
  /** Unix time in milliseconds, for `receivedAt`. */
  readonly now: () => number;
  readonly clock: MonotonicClock;
  readonly log: Log;
  readonly limits?: HttpLimits;
  /** Receives the reason of each answer to a delivery with accepted headers, and the time since they came. */
  readonly onAnswer?: (reason: AnswerReason, ms: number) => void;
}

declare module 'fastify' {
  interface FastifyRequest {
    arrivedAt: number;
    claim: Claim | undefined;
  }
}

export type Receiver = FastifyInstance & {
  readonly counters: Readonly<AnswerCounters>;
};

const webhooksPath = '/webhooks';
const noBody = Buffer.alloc(0);

/** Why a body was not read to its end. Fastify then ends the socket with the answer. */
const reasonsOfBodyErrors: ReadonlyMap<unknown, AnswerReason> = new Map([
  ['FST_ERR_CTP_BODY_TOO_LARGE', 'too-large'],
  ['CROWDED', 'busy'],
  ['ECONNRESET', 'cut-short'],
]);

/**
 * Builds the HTTP edge. The caller calls `listen` with one address, and `close`.
 *
 * `POST /webhooks` answers 204 if the event is durable (service.md 4.1.2), 401 if it is not verified
 * (service.md 7), 411, 413, 415 or 405 to what is not a delivery, and 503 with Retry-After if it cannot
 * accept the delivery now, as after `close`. Events that were accepted before get their answer.
 */
export function buildReceiver(dependencies: ReceiverDependencies): Receiver {
  const { clock, log, drain, limits = httpLimits, onAnswer } = dependencies;
  const { counters, count } = createAnswerCounters({ now: () => clock.now(), log });
  const unanswered = boundUnanswered(limits);
  const beforeHeaders = boundBeforeHeaders(limits);
  const app = fastify({
    ...serverOptions(limits, (request) => {
      beforeHeaders.complete(request);
      if (unanswered.isFull(request.socket)) return 'busy';
      return 'transfer-encoding' in request.headers ? 'length-required' : undefined;
    }),
    clientErrorHandler: answerClientErrors(count),
    frameworkErrors: (_error, request, reply) => {
      endAfterUnread(request, reply);
      send(reply, 'not-found');
    },
  });
  app.server.maxHeadersCount = limits.headersMax;
  const refuse = (socket: Socket, reason: AnswerReason): void => {
    if (socket.destroyed) return;
    count(reason);
    endWithAnswer(socket, reason);
    // The socket ends at once, even if the sender reads none of the answers.
    socket.destroy();
  };
  const endCrowded = (socket: Socket) => refuse(socket, 'busy');
  onRefused(app.server, refuse);
  unanswered.watch(app.server, endCrowded);
  beforeHeaders.watch(app.server, (socket) => refuse(socket, 'headers-too-large'));
  const connections = boundConnections(app.server, limits, endCrowded);
  const state = endConnectionsAtClose(app, limits, clock, drain);
  const send: Send = (reply, reason) => {
    count(reason);
    const { arrivedAt } = reply.request;
    if (arrivedAt > 0) onAnswer?.(reason, clock.now() - arrivedAt);
    // Also for requests from before the close, whose sockets would otherwise stay open for the next request.
    if (state.closing) reply.header('connection', 'close');
    sendAnswer(reply, answerStatus[reason], limits.retryAfterSeconds);
  };

  app.setErrorHandler((error, _request, reply) => {
    const reason = reasonsOfBodyErrors.get((error as { code?: unknown }).code);
    if (reason === undefined) log.error({ err: error }, 'request failed');
    send(reply, reason ?? 'failed');
  });
  app.addHook('onRequest', (request, reply, done) => {
    endAfterUnread(request, reply);
    if (!isOneHost(request.raw)) send(reply.header('connection', 'close'), 'malformed');
    // Answered here: Fastify would judge the type of a body that nobody reads, and count a failure.
    else if (request.is404) send(reply, isWebhooksPath(request.url) ? 'method-not-allowed' : 'not-found');
    else done();
  });
  const handle = createWebhookHandler(dependencies, connections, send);
  registerWebhooks(app, dependencies, { boundBody: boundBodies(limits), handle, send });
  registerHealth(app, dependencies, limits, state);
  app.decorate('counters', counters);
  return app as unknown as Receiver;
}

type Send = (reply: FastifyReply, reason: AnswerReason) => void;
type Handle = (request: FastifyRequest, reply: FastifyReply) => void;

/** Takes `POST /webhooks`: judges the headers, then has Fastify read the body. */
function registerWebhooks(
  app: FastifyInstance,
  { verify, clock }: ReceiverDependencies,
  { boundBody, handle, send }: { boundBody: (request: IncomingMessage) => void; handle: Handle; send: Send },
): void {
  app.register(async (scope) => {
    scope.decorateRequest('arrivedAt', 0);
    scope.decorateRequest('claim', undefined);
    scope.addHook('onRequest', (request, reply, done) => {
      const claim = verify.headers(request.raw.rawHeaders);
      if (typeof claim === 'string') {
        // The body is not read, so the socket cannot be used again.
        send(reply.header('connection', 'close'), claim);
        return;
      }
      request.claim = claim;
      // The sender's time-out begins with its request, whose headers are the first part that Node reports.
      request.arrivedAt = clock.now();
      // The signature covers the bytes, not their type; Fastify would refuse a type that it cannot parse.
      request.raw.headers['content-type'] = undefined;
      done();
    });
    scope.addHook('preParsing', (request, _reply, payload, done) => {
      boundBody(request.raw);
      done(null, payload);
    });
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.post(webhooksPath, handle);
  });
}

/** Judges the body by what the headers claimed; only a verified delivery waits for its answer. */
function createWebhookHandler(
  { verify, accept, now }: ReceiverDependencies,
  connections: Connections,
  send: Send,
): Handle {
  const take = (request: FastifyRequest, body: Buffer): AnswerReason | Promise<CommitResult> => {
    const verdict = verify.body(request.claim as Claim, body);
    if (typeof verdict === 'string') return verdict;
    connections.verified(request.raw.socket);
    const { id, timestamp, body: text } = verdict;
    const event = { id, timestamp, receivedAt: new Date(now()).toISOString(), body: text };
    return accept(event, request.arrivedAt);
  };
  return (request, reply) => {
    const outcome = take(request, (request.body ?? noBody) as Buffer);
    if (typeof outcome === 'string') {
      send(reply, outcome);
      return;
    }
    outcome.then(
      (answer) => send(reply, answer),
      (error) => reply.send(error),
    );
  };
}

/** Serves `/healthz` (the process answers) and `/readyz` (it can take events). Neither says why not. */
function registerHealth(
  app: FastifyInstance,
  dependencies: ReceiverDependencies,
  { readyForMs }: HttpLimits,
  state: { readonly closing: boolean },
): void {
  const isReady = rememberReady(dependencies, readyForMs);
  app.get('/healthz', (_request, reply) => {
    reply.send({ status: 'ok' });
  });
  app.get('/readyz', async (_request, reply) => {
    const takes = !state.closing && (await isReady());
    return reply.code(takes ? 200 : 503).send({ status: takes ? 'ready' : 'not ready' });
  });
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

/** Closes the socket after the answer to a request with a body, unless it is a delivery: nobody reads it. */
function endAfterUnread({ method, url, headers }: FastifyRequest, reply: FastifyReply): void {
  const isDelivery = method === 'POST' && isWebhooksPath(url);
  if (!isDelivery && Number(headers['content-length'] ?? 0) > 0) reply.header('connection', 'close');
}

/** More than one Host header gets 400 (RFC 9112): Node takes the first, and a proxy may take the last. */
function isOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0');
}

function isWebhooksPath(url: string): boolean {
  return url === webhooksPath || url.startsWith(`${webhooksPath}?`);
}

/** Node's and Fastify's bounds; http-limits.ts has the reasons. */
function serverOptions(limits: HttpLimits, judge: JudgeHeaders) {
  return {
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    maxRequestsPerSocket: limits.requestsPerSocketMax,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.connectionsCheckMs,
      IncomingMessage: judgedRequests(judge),
      // Otherwise Node itself would answer, however many requests wait for their answers: see `isOneHost`.
      requireHostHeader: false,
    },
    // The receiver itself answers during a close, with Retry-After.
    return503OnClosing: false,
    logger: false,
  } as const;
}

/** Says why a request is refused at its headers; undefined if it is not. */
type JudgeHeaders = (request: IncomingMessage) => AnswerReason | undefined;

/**
 * Makes the class of a server's requests. Each is judged once, as soon as its headers are complete.
 *
 * Destroying a socket does not stop Node's parser: it goes on through the 64 kB that were read, which costs
 * some 10 ms. It only stops at an upgrade, where the bytes after the headers are not HTTP. So a refused
 * request presents itself as an upgrade, and `onRefused` answers it on the raw socket. An upgrade that a
 * client asks for is never granted.
 */
function judgedRequests(judge: JudgeHeaders) {
  return class JudgedRequest extends IncomingMessage {
    refusal: AnswerReason | null | undefined;

    /** Node reads this when the headers are complete, and again when it has parsed what it read. */
    get upgrade(): boolean {
      if (this.refusal === undefined) this.refusal = judge(this) ?? null;
      return this.refusal !== null || this.method === 'CONNECT';
    }

    /** Node notes here what the client asks for. */
    set upgrade(_asked: unknown) {}
  };
}

/** Calls `refuse` with each request that was refused at its headers, and its socket. */
function onRefused(server: Server, refuse: (socket: Socket, reason: AnswerReason) => void): void {
  server.on('upgrade', (request, socket) => {
    // Node has taken its own listeners off this socket.
    socket.on('error', () => {});
    const { refusal } = request as IncomingMessage & { refusal: AnswerReason };
    refuse(socket as Socket, refusal);
  });
}

/** Remembers for a while whether events can be taken, with one call at most under way. Never rejects. */
export function rememberReady(
  { ready, clock, log }: Pick<ReceiverDependencies, 'ready' | 'clock' | 'log'>,
  forMs: number,
): () => Promise<boolean> {
  const find = async (): Promise<boolean> => {
    try {
      return await ready();
    } catch (error) {
      log.warn({ err: error }, 'readiness is not known');
      return false;
    }
  };
  return remember(find, forMs, () => clock.now());
}
