/**
 * How much is processed, kept or sent at the same time. Each limit has its unit and its reason. Time-outs and
 * numbers of tries are in retry-policy.ts, and the limits of HTTP at the receiver in receiver/http-limits.ts.
 */
export const limits = {
  /** Events in one group commit. More events would make retries coarser and gain nothing measurable. */
  groupEventsMax: 500,
  /** Encoded bytes of one group: a quarter of the 2 MiB that a payload of Temporal may have. */
  groupBytesMax: 512 * 1024,
  /** Above this many encoded bytes, the body of an event travels as base64, which adds a third. */
  eventEncodedBytesMax: 1_400_000,
  /** Raw bytes of one webhook body. The delivery provider accepts events of about 350 kB. */
  webhookBodyBytesMax: 1024 * 1024,
  /** Starts of applyEvents in flight. One at a time makes the largest groups and is the fastest. */
  groupStartsInFlight: 1,
  /**
   * A group of fewer events waits for further events, because senders that were just answered may send again.
   * It waits until no event has come for `groupLingerQuietMs`, and for at most `groupLingerMs`. A start takes
   * 15 ms of Temporal's processor time, however small the group is.
   */
  groupLingerBelowEvents: 64,
  groupLingerQuietMs: 10,
  groupLingerMs: 25,
  /** Verified events that wait, and their encoded bytes. Above either limit, deliveries get 503. */
  queueEventsMax: 4_000,
  queueBytesMax: 64 * 1024 * 1024,
  /**
   * Time from the last byte of a request's headers to its answer; the headers themselves may take
   * `headersTimeoutMs`. The service gives up on a delivery after 15 s (service.md 4.1.2).
   */
  answerWithinMs: 8_000,
  /** One attempt to start a workflow. */
  startDeadlineMs: 5_000,
  /** Requests of one process in flight. The service asks each customer not to exceed this in total. */
  requestsAtOnce: 10,
  /** Bytes of one answer: a page of 100 bills with their usage and line items is about a megabyte. */
  answerBytesMax: 24 * 1024 * 1024,
  /** The number up to which a report counts rows. Counting further would cost more than it is worth. */
  countMax: 10_000,
  /** Dead and missing events that health counts and the overview groups; each takes four look-ups. */
  givenUpMax: 1_000,
  /** For how long the log leaves out a failure that it has reported and that is being retried. */
  failureLogMs: 60_000,
  /** Workflows of each type that a check of an upgrade replays. */
  historiesReplayed: 50,
} as const;

/**
 * Memory of answers, in the units of `AnswerMemory`, each at most eight bytes. All answers together take less
 * than 400 MB of a worker's gigabyte; without answers its peak was 320 to 440 MB.
 */
export const answerMemory = { total: 48 * 1024 * 1024, answerMax: limits.answerBytesMax } as const;

/** Reads of records just after their events were recorded. */
export const drainBounds = {
  /** Reads within workflow tasks at the same time. */
  atOnce: 4,
  /** Records that one of them reads. Of groups with more, the sweep reads more records together. */
  records: 4,
  /** Owners that one of them reads at the same time. */
  owners: 2,
  /** Time after which it ends. Temporal expects a workflow task to end within 5 s. */
  limitMs: 3_000,
  /** It begins only if the group was recorded within this time of its start. */
  recordedWithinMs: 2_000,
  /** Groups that a process records at the same time. More would mostly wait for each other's rows. */
  recordings: 3,
} as const;

/**
 * The sweep: activities at the same time, owners that each serves, and the time after which it begins no other;
 * how soon something has to be due for the sweep to wait for it; the shortest and longest time between two
 * looks; rounds before it continues as new.
 */
export const sweepBounds = {
  lanes: 4,
  ownersPerLane: 8,
  sliceMs: 10_000,
  soonMs: 60_000,
  lookMinMs: 500,
  lookMaxMs: 5_000,
  roundsPerRun: 400,
} as const;

/** The workflow `catchUp` of version 0.2, until it has ended. */
export const catchUpBounds = {
  ownersPerChunk: 8,
  chunksAtOnce: 4,
  roundsPerRun: 400,
  lingerMs: 20_000,
} as const;

/**
 * Companies that a run reads at once; companies that a worker reads at once for all runs; and meters of these that
 * it reads at once, because their readings are held in memory.
 */
export const backfillBounds = { companiesAtOnce: 8, companiesOfWorker: 32, metersAtOnce: 10 } as const;

/** How much one activity, statement or walk processes. */
export const batches = {
  /** Records whose events one transaction settles. If more documents of a company are due, its listings are read. */
  connections: 5_000,
  documents: 500,
  /** Records that show whether an endpoint of single records exists. */
  recordsProbed: 3,
  /** Events that `metersync resume` makes due in one transaction. */
  eventsRevived: 10_000,
  /** Records of a company whose events are settled after one read of its listings. */
  recordsSettled: 50_000,
  /** Ranges of a meter. Each heartbeat contains them, so they are few. */
  ranges: 50,
  /**
   * Due events whose owners are returned, starting with those that have been due longest. If there are more,
   * each owner is looked up separately.
   */
  dueEvents: 500,
  /** Due events that are looked at for each record that one catch-up reads. */
  eventsOfRecord: 4,
  /** Up to this number, records are read one by one. For more, the listing is read. */
  recordsOneByOne: 25,
  /** Readings that one piece of a range should have, because the service may send all of them in one page. */
  readingsOfPiece: 20_000,
  /** Readings that one statement compares and writes. */
  readingsWritten: 5_000,
  /** With so many readings, COPY writes them if the warehouse has none of their range. */
  readingsCopied: 1_000,
  /** Meters of a company that one statement lists. */
  meters: 25,
  /**
   * Pages that are read ahead of the page being written, and the characters of their text. A page that was
   * requested below the limit may be as long as the client allows.
   */
  pagesAhead: 4,
  charactersAhead: 4_000_000,
  /** Pages of one listing that a reconcile reads; more are left to the full backfill. */
  pagesOfReconcile: 100,
  /**
   * How many pages more than announced a walk reads: this number or a tenth of the announced pages, whichever
   * is larger. A listing may grow while it is read, but not forever.
   */
  pagesOverAnnounced: 100,
  /** Pages of a walk if the service does not announce their number. These have ten million records. */
  pagesUnannounced: 100_000,
  /** Payloads, parts of runs or pages that one statement drops, so that it locks rows for only some milliseconds. */
  rowsDropped: 1_000,
  /** The newest events whose delays health measures. */
  delaysRead: 1_000,
  /** Events of each outcome in the journal among which health looks for the event that was settled last. */
  settledSearched: 100,
  /** Payloads that one statement reads: 30 MB, if each of them has `printedBytesMax`. */
  payloadsRead: 20,
  /** How many of the newest operations are searched for a record. Names have no index. */
  operationsSearched: 1_000,
  /**
   * Companies that are read after a failure, with two requests each, to find out whether the service answers
   * at all. A failure that concerns one company must not stop the work for the others.
   */
  companiesProbed: 3,
  /** Companies that are checked at the same time. More would take capacity of Postgres that events need. */
  companiesChecked: 1,
  /**
   * Connections that the catch-ups share. With more, their statements would wait for one another in Postgres,
   * and events would wait for all of them. Fewer connections cost less, because each connection keeps plans
   * of its own, and because waiting records are read together.
   */
  catchUpConnections: 4,
} as const;
