/**
 * Every bound that two rooms share, with its unit and its reason. A bound that one file alone needs stands
 * in that file.
 */
export const limits = {
  /** Events in one group commit: more makes retries coarser and gains nothing measurable. */
  groupEventsMax: 500,
  /** Encoded bytes of one group: a quarter of Temporal's 2 MiB payload limit, its warning line. */
  groupBytesMax: 512 * 1024,
  /** Encoded bytes of one event above which its body travels as base64, which grows by a fixed third. */
  eventEncodedBytesMax: 1_400_000,
  /** Raw bytes of one webhook body. The delivery provider accepts events of about 350 kB. */
  webhookBodyBytesMax: 1024 * 1024,
  /** Starts of applyEvents in flight: one makes the largest groups and was measured fastest. */
  groupStartsInFlight: 1,
  /**
   * A group of fewer events waits for those who were answered just now to send again: as long as some come at distances below the first
   * time, and no longer than the second. A start costs Temporal as much for one event as for dozens, 15 ms of processor.
   */
  groupLingerBelowEvents: 64,
  groupLingerQuietMs: 10,
  groupLingerMs: 25,
  /** Verified events waiting for their group's start, and their encoded bytes; past either, 503. */
  queueEventsMax: 4_000,
  queueBytesMax: 64 * 1024 * 1024,
  /** The service gives up on a delivery after 15 s (seed 4.1.2); every answer comes well before that, from its first byte on. */
  answerWithinMs: 8_000,
  /** One attempt to start a workflow. */
  startDeadlineMs: 5_000,
  /** Records on a page of every list endpoint but connections (seed 8). */
  pageSize: 100,
  /** Passes over a listing before it is called unstable. */
  passesMax: 3,
} as const;
