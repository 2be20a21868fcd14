import { limits } from '../contract/limits.ts';

/** Limits of the HTTP edge that differ from defaults of Node and Fastify (server.test.ts names those). */
export const httpLimits = {
  /** Raw bytes of one body; see the contract. */
  bodyBytesMax: limits.webhookBodyBytesMax,
  /** Memory that each piece of a body takes in addition to its bytes. A piece is what came in one read. */
  pieceBytes: 512,
  /** Raw bytes up to which a body is small, as of most deliveries. Small bodies share memory of their own. */
  smallBodyBytesMax: 64 * 1024,
  /** Memory of the small, unverified bodies that are being read: a reserve that no large body takes. */
  smallBodiesBytesMax: 32 * 1024 * 1024,
  /** The same for all other bodies. Beyond either limit, the body that began first is ended. */
  largeBodiesBytesMax: 96 * 1024 * 1024,
  /** Maximum number of header fields. A request with more is answered with 431. */
  headersMax: 200,
  /** Bytes before the headers of a request are complete. Node allows 16 kB of headers, and any blank lines. */
  beforeHeadersBytesMax: 64 * 1024,
  /** Time until a request's headers are complete, so also how long a new socket may stay silent. */
  headersTimeoutMs: 5_000,
  /** Time until a request is complete. With `connectionsCheckMs`, it ends before the answer is due. */
  requestTimeoutMs: limits.answerWithinMs - 1_000,
  /** How often Node looks for sockets that exceed these two times. It may end them late by this long. */
  connectionsCheckMs: 1_000,
  /** A socket is ended after this silence: longer than `answerWithinMs`, for which a request may wait. */
  connectionTimeoutMs: limits.answerWithinMs + 4_000,
  /** Requests until the sender is asked to open another socket, so that several receivers share the load. */
  requestsPerSocketMax: 10_000,
  /** Requests of one socket that may wait. The service sends one at a time; Node would read 2,600 at once. */
  unansweredPerSocketMax: 4,
  /** Open sockets, at about 15 kB each, and at most half of the files that the process may open. */
  connectionsMax: 8_192,
  /** At close, the time between the last answer to an accepted event and the end of the remaining sockets. */
  closeGraceMs: 500,
  /** How long the answer to `GET /readyz` is remembered: anyone may ask, and it costs a call to Temporal. */
  readyForMs: 1_000,
  /** Temporal answers within this time, or the receiver is not ready. */
  readyWithinMs: 2_000,
  /** Refusals are logged this often for each reason: enough for an operator with a wrong secret. */
  logIntervalMs: 60_000,
  /** How often the file of secrets is checked: a rotation is in force a second after it is written. */
  secretsCheckMs: 1_000,
  /** Retry-After of a 503: the provider waits 5 to 10 s before its first retry. */
  retryAfterSeconds: 10,
} as const;

export type HttpLimits = Readonly<Record<keyof typeof httpLimits, number>>;
