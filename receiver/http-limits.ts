import { limits } from '../contract/limits.ts';

/**
 * Limits of the HTTP edge that differ from the defaults of Node and Fastify, with their units and reasons.
 * server.test.ts names the defaults that matter.
 */
export const httpLimits = {
  /** Raw bytes of one body; see the contract. */
  bodyBytesMax: limits.webhookBodyBytesMax,
  /** Memory that each piece of a body costs besides its bytes: a piece is what came in one read. */
  pieceBytes: 512,
  /** Raw bytes of a small body, as most deliveries are; small bodies share memory of their own. */
  smallBodyBytesMax: 64 * 1024,
  /**
   * Memory of the small, unverified bodies that are being read at the same time: a reserve that no large body
   * takes.
   */
  smallBodiesBytesMax: 32 * 1024 * 1024,
  /** The same for all others. Past either bound the body that began first is ended. */
  largeBodiesBytesMax: 96 * 1024 * 1024,
  /** Header fields. Past them, 431. */
  headersMax: 200,
  /** Time until a request's headers are complete, so also how long a new socket may stay silent. */
  headersTimeoutMs: 5_000,
  /**
   * Time until a request is complete with its body; with `connectionsCheckMs`, no later than its answer is
   * due.
   */
  requestTimeoutMs: limits.answerWithinMs - 1_000,
  /** How often Node looks for sockets past these two times, so how late it may end them. */
  connectionsCheckMs: 1_000,
  /**
   * Ends a socket without a byte either way; longer than `answerWithinMs`, as a waiting request is silent.
   */
  connectionTimeoutMs: limits.answerWithinMs + 4_000,
  /**
   * Requests on one socket before the sender is asked to open another, so that several receivers share the
   * load.
   */
  requestsPerSocketMax: 10_000,
  /**
   * Requests of one socket that may wait for their answer. The service sends no delivery before the answer to
   * the one before. Node would read some 2,600 requests, of several kB each, at once.
   */
  unansweredPerSocketMax: 4,
  /**
   * Open sockets, at about 15 kB each. Further sockets are closed at once. There are fewer if the process may
   * open fewer than twice as many files.
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
