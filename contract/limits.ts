/**
 * Every bound that two rooms share, with its unit and its reason. A bound of one file is in that file.
 */
export const limits = {
  /** Events in one group commit: more makes retries coarser and gains nothing measurable. */
  groupEventsMax: 500,
  /** Encoded bytes of one group: a quarter of Temporal's 2 MiB payload limit, its warning line. */
  groupBytesMax: 512 * 1024,
  /** Above these encoded bytes an event's body travels as base64, which adds a fixed third. */
  eventEncodedBytesMax: 1_400_000,
  /** Raw bytes of one webhook body. The delivery provider accepts events of about 350 kB. */
  webhookBodyBytesMax: 1024 * 1024,
  /** Starts of applyEvents in flight: one makes the largest groups and was measured fastest. */
  groupStartsInFlight: 1,
  /**
   * A group of fewer events waits for senders that were just answered to send again: until none came for
   * `groupLingerQuietMs`, and `groupLingerMs` at most. A start costs Temporal 15 ms of processor for any
   * group.
   */
  groupLingerBelowEvents: 64,
  groupLingerQuietMs: 10,
  groupLingerMs: 25,
  /** Verified events waiting for their group's start, and their encoded bytes; above either, 503. */
  queueEventsMax: 4_000,
  queueBytesMax: 64 * 1024 * 1024,
  /**
   * From a request's first byte to its answer. The service gives up on a delivery after 15 s (seed 4.1.2).
   */
  answerWithinMs: 8_000,
  /** One attempt to start a workflow. */
  startDeadlineMs: 5_000,
  /** Records on a page of every list endpoint but connections (seed 8). */
  pageSize: 100,
  /** Passes over a listing before it is called unstable. */
  passesMax: 3,
} as const;
