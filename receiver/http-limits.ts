import { limits } from '../contract/limits.ts';

/**
 * Limits of the HTTP edge that differ from the defaults of Node and Fastify, with their units and reasons.
 * server.test.ts names the defaults that matter.
 */
export const httpLimits = {
  /** Raw bytes of one body; see the contract. */
  bodyBytesMax: limits.webhookBodyBytesMax,
  /** Memory that each piece of a body takes in addition to its bytes. A piece is what came in one read. */
  pieceBytes: 512,
  /**
   * Raw bytes up to which a body is small, as most deliveries are. Small bodies share memory of their own.
   */
  smallBodyBytesMax: 64 * 1024,
  /**
   * Memory of the small, unverified bodies that are being read at the same time: a reserve that no large body
   * takes.
   */
  smallBodiesBytesMax: 32 * 1024 * 1024,
  /** The same for all other bodies. Beyond either limit, the body that began first is ended. */
  largeBodiesBytesMax: 96 * 1024 * 1024,
  /** Maximum number of header fields. A request with more is answered with 431. */
  headersMax: 200,
  /** Time until a request's headers are complete, so also how long a new socket may stay silent. */
  headersTimeoutMs: 5_000,
  /**
   * Time until a request is complete with its body. Together with `connectionsCheckMs`, it ends no later than
   * the answer is due.
   */
  requestTimeoutMs: limits.answerWithinMs - 1_000,
  /** How often Node looks for sockets that exceed these two times. It may end them late by this long. */
  connectionsCheckMs: 1_000,
  /**
   * A socket is ended if no byte passes in either direction for this long. This time is longer than
   * `answerWithinMs`, because a request that waits for its answer is silent.
   */
  connectionTimeoutMs: limits.answerWithinMs + 4_000,
  /**
   * Requests on one socket before the sender is asked to open another, so that several receivers share the
   * load.
   */
  requestsPerSocketMax: 10_000,
  /**
   * Requests of one socket that may wait for their answer. The service sends no delivery before it has the
   * answer to the previous delivery. Node would read some 2,600 requests, of several kB each, at once.
   */
  unansweredPerSocketMax: 4,
  /**
   * Open sockets, at about 15 kB each. Further sockets are closed at once. The limit is lower if the process
   * may open fewer than twice as many files.
   */
  connectionsMax: 8_192,
  /** At close, the time between the last answer to an accepted event and the end of the remaining sockets. */
  closeGraceMs: 500,
  /**
   * How long the answer to `GET /readyz` is remembered: anyone may ask, and each answer costs a call to
   * Temporal.
   */
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
