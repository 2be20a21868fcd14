/**
 * How much is done, held or sent at once, each bound with its unit and its reason. Times and tries are in
 * retry-policy.ts, the bounds of HTTP at the receiver in receiver/http-limits.ts.
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
   * From the last byte of a request's headers to its answer; these may take `headersTimeoutMs`. The service gives
   * up on a delivery after 15 s (service.md 4.1.2).
   */
  answerWithinMs: 8_000,
  /** One attempt to start a workflow. */
  startDeadlineMs: 5_000,
  /** Requests of one process to the service in flight. The service asks customers not to exceed this in all. */
  requestsAtOnce: 10,
  /** Bytes of one answer: a page of 100 bills with their usage and line items is about a megabyte. */
  answerBytesMax: 24 * 1024 * 1024,
  /** Rows that a report counts: from here on a count costs more than it says. */
  countMax: 10_000,
  /** Dead events, and missing ones, that health counts and the overview groups: each takes four look-ups. */
  givenUpMax: 1_000,
  /** How long the log leaves out a failure that it reported and that is tried again. */
  failureLogMs: 60_000,
  /** Workflows of each type that a check of an upgrade replays. */
  historiesReplayed: 50,
} as const;

/**
 * Memory of answers, in the units of `AnswerMemory`: eight bytes at most. All answers take less than 400 MB of
 * the gigabyte that a worker has; without answers its peak was 320 to 440 MB.
 */
export const answerMemory = { total: 48 * 1024 * 1024, answerMax: limits.answerBytesMax } as const;

/**
 * Owners that one catch-up activity serves, activities at once, and rounds before the workflow continues as
 * new. An idle catch-up lingers, as Temporal refuses to start a workflow id again within a second.
 */
export const catchUpBounds = {
  ownersPerChunk: 8,
  chunksAtOnce: 4,
  roundsPerRun: 400,
  lingerMs: 20_000,
} as const;

/**
 * Companies in backfill at once; small companies that one activity reads, one after the other; and companies
 * that one run of backfillAll reads before it continues as new.
 */
export const backfillBounds = { companiesAtOnce: 8, companiesTogether: 25, companiesPerRun: 200 } as const;

/** How much one activity, statement or walk takes at once. */
export const batches = {
  /** Stale records that one catch-up reads: connections and documents of a company, ranges of a meter. */
  connections: 5_000,
  documents: 500,
  /** The heartbeats carry them. */
  ranges: 50,
  /** Stale records whose owners are returned, longest due first, before each owner is looked up by itself. */
  dueRecords: 500,
  /** Up to this many documents are read one by one; for more the listing is searched. */
  documentsOneByOne: 25,
  /** Readings that one piece of a range should have, as the service may send all of them in one page. */
  readingsOfPiece: 20_000,
  /** Readings collected from pages before a write, and the most that one write takes. */
  readingsWritten: 5_000,
  /** Meters that one activity reads. It returns a cursor for the rest, so that no activity runs for hours. */
  meters: 25,
  /** A company with more records in one listing is large: 20 pages. */
  recordsOfSmallCompany: 2_000,
  /**
   * Pages read ahead of the one that is being written, and characters of their text. A page begun below the
   * bound may be as long as the client allows.
   */
  pagesAhead: 4,
  charactersAhead: 4_000_000,
  /** Pages of one listing that a reconcile reads; more are left to the full backfill. */
  pagesOfReconcile: 100,
  /**
   * How many pages more than announced a walk reads, at least; else a tenth of the announced pages. A listing
   * may grow while it is read, but not forever.
   */
  pagesOverAnnounced: 100,
  /** Pages of a walk when the service announces no number: ten million records. */
  pagesUnannounced: 100_000,
  /** Payloads, parts of runs or pages dropped by one statement, so that rows are locked for some milliseconds only. */
  rowsDropped: 1_000,
  /** Of the events that came last, those whose delays a reading of health measures. */
  delaysRead: 1_000,
  /** Events of each place in the journal among which the one that was settled last is looked for. */
  settledSearched: 100,
  /** Payloads read by one statement: at `printedBytesMax` 30 MB together. */
  payloadsRead: 20,
  /** Operations of the log, the newest, among which a record's are looked for: names have no index. */
  operationsSearched: 1_000,
  /** Companies that are asked for after a failure, two requests each: others must not fail for one of them. */
  companiesProbed: 3,
  /** Companies checked at once: more would take more of Postgres than events leave. */
  companiesChecked: 1,
  /**
   * Connections that the catch-up shares. With more, its statements would wait for one another at Postgres,
   * and events for all of them. Fewer cost less: each connection keeps its plans, and records that wait are
   * read together.
   */
  catchUpConnections: 4,
  /** Ranges of readings that catch-ups compare as a whole at once: each holds a connection while it is read. */
  comparisonsAtOnce: 2,
} as const;

/** How much one page of the console reads. */
export const consoleBounds = {
  /** Rows of a list; the next ones are a page of their own. */
  rows: 50,
  /** Rows of a run's deletions, which somebody looks through before a decision; the command lists all. */
  deletedRows: 1_000,
  /** Events, or records that wait, that a page of events looks at: each takes some look-ups. */
  searchedMax: 4_000,
  /** The newest events of a day whose outcomes the overview adds up. */
  arrivalsMax: 20_000,
  /** Connections that need somebody among which a page finds the oldest: each takes three look-ups. */
  connectionsMax: 4_000,
} as const;
