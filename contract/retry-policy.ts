import { formatSeconds } from './times.ts';

/**
 * Every time-out, wait and number of tries, with its unit and its reason. Failed work is retried at three
 * levels, each far more patient than the one before:
 *
 * 1. `requestPolicy`: the client retries a request a few times, within a minute.
 * 2. `activityPolicy`: Temporal retries an activity for an hour, or until it succeeds.
 * 3. `recordPolicy`: an event whose record fails is due again later, longer after each attempt.
 *
 * A failure that holds for every request, or for every request of an owner, closes a gate: until a probe
 * succeeds, nothing else is requested. Limits of size are in limits.ts.
 */

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;

/** Level 1. It is short, because requests run inside activities that heartbeat and that Temporal retries. */
export const requestPolicy = {
  /** Time-out of one attempt, from connecting to the last byte. */
  timeoutMs: 30 * seconds,
  /** The part of this time that a proxy may take to open a tunnel. */
  tunnelMs: 10 * seconds,
  /** How long an answer may wait for memory that other answers hold, usually for seconds. */
  memoryWaitMaxMs: 60 * seconds,
  attemptsMax: 4,
  /** Maximum total of all waits of one request. */
  waitMaxMs: 60 * seconds,
  /** Ceiling of the wait before the second attempt; it doubles with each further attempt. */
  backOffFirstMs: 1 * seconds,
  backOffMaxMs: 16 * seconds,
  /** The longest Retry-After that is followed: a wrong header must not stop a sync for days. */
  retryAfterMaxMs: 1 * hours,
  /** When the gate opens, backfills spread their requests over this time: live requests go first. */
  backfillSpreadMs: 250,
} as const;

/** Temporal's retries: the first and the longest wait in milliseconds. Each wait is twice the one before. */
const doubling = (initialInterval: number, maximumInterval: number) => ({
  initialInterval,
  maximumInterval,
  backoffCoefficient: 2,
});

/** For work that the next run repeats. It gives up sooner than a backfill. */
const fewRetries = { ...doubling(2 * seconds, 2 * minutes), maximumAttempts: 6 } as const;

/**
 * Tries in a row of a part of a run, after which it counts as failed. A worker that is killed uses up a try. A try
 * that gets further begins to count anew.
 */
const triesOfPart = { full: 36, reconcile: fewRetries.maximumAttempts } as const;

/** A worker that is killed is noticed after this time. */
const heartbeatTimeout = 30 * seconds;

/**
 * Level 2, as Temporal's options. Permanent failures are marked non-retryable (see the failure catalogue), so
 * everything retried here can succeed later.
 */
export const activityPolicy = {
  /** First try of short work on the warehouse, as a local activity: 1.3 times as fast as a remote one. */
  quickLocal: {
    startToCloseTimeout: 8 * seconds,
    retry: { initialInterval: 50, maximumAttempts: 2 },
  },
  /** The same work after the local tries failed. It is retried until it succeeds: no event may be lost. */
  quickUnlimited: { startToCloseTimeout: 1 * minutes, retry: doubling(500, 30 * seconds) },
  /** The watch. It ends before the next watch begins, which repeats what failed. */
  eachMinute: {
    startToCloseTimeout: 40 * seconds,
    scheduleToCloseTimeout: 50 * seconds,
    retry: doubling(1 * seconds, 10 * seconds),
  },
  /** Reading the records of owners with due events. */
  sweeping: {
    startToCloseTimeout: 1 * hours,
    heartbeatTimeout,
    retry: doubling(1 * seconds, 1 * minutes),
  },
  /** Reading the list of companies, which a run begins with. */
  starting: {
    startToCloseTimeout: 12 * hours,
    heartbeatTimeout,
    retry: { ...doubling(2 * seconds, 2 * minutes), maximumAttempts: triesOfPart.full },
  },
  /**
   * Reading the companies of a run. Each attempt continues with the page after the last written page. The
   * activity itself gives up a part that fails as often as `triesOfPart` allows.
   */
  reading: {
    startToCloseTimeout: 12 * hours,
    heartbeatTimeout,
    retry: doubling(2 * seconds, 2 * minutes),
  },
  /** Dropping payloads. */
  recurring: { startToCloseTimeout: 1 * hours, heartbeatTimeout, retry: fewRetries },
  checking: { startToCloseTimeout: 6 * hours, heartbeatTimeout, retry: fewRetries },
  /** Writing the state of a run. */
  noting: { startToCloseTimeout: 30 * seconds, retry: doubling(500, 30 * seconds) },
} as const;

/**
 * Time-outs of workflows that metersync's schedules start, longer than all tries of their activities. A run
 * that hangs would otherwise hold up the next one.
 */
export const ownRunsWithinMs = { watch: 10 * minutes, dropPayloads: 8 * hours } as const;

/** Times and numbers of tries within an activity. */
export const attemptPolicy = {
  /**
   * How often an activity sends its cursor: far more often than the heartbeat time-out requires. If its
   * worker is killed, the pages that were read since the last heartbeat are read again.
   */
  heartbeatEveryMs: 3 * seconds,
  /** After this many attempts, in some minutes, a failure of unclear cause counts as the item's own. */
  unclearMax: 8,
  /** Attempts to read a meter. If all fail while others can be read, the backfill leaves it out. */
  meterTries: 4,
  triesOfPart,
  /** Passes over a listing before it is called unstable. */
  passesMax: 3,
  /** How long a run checks whether the endpoints of single records exist. */
  endpointCheckMs: 10 * seconds,
  /** How long `metersync audit` waits before it reads a listing with differences again. */
  settleMs: 5 * seconds,
  /** After this many waits without a change, an audit regards differences as lasting. */
  settlesMax: 3,
  /** How often a process starts the sweep for events that were left. The sweep lives for longer. */
  sweepStartedEveryMs: 1 * seconds,
  /** How often the progress of a meter with many readings is written. Nobody looks more often. */
  progressEveryMs: 1 * seconds,
  /** How long an event may be on its way before the change it should announce counts as missed. */
  eventOnItsWaySeconds: 300,
} as const;

/**
 * Level 3. The first wait of an event is `waitFirstSeconds`. Each further wait for the same reason is
 * twice as long, up to `waitMaxSeconds`.
 */
export const recordPolicy = {
  /** Days before today (UTC) whose updates a reconcile reads. The nightly backfill reads the rest. */
  reconciledDays: 2,
  /** An event is due for the sweep this long after it was recorded: a lone one is read and settled by then. */
  drainedSeconds: 1,
  /** A read that begins so long after an event shows its state: the API may lag behind events. */
  mayLagSeconds: 60,
  waitFirstSeconds: 1,
  waitMaxSeconds: 900,
  /** The first wait of a closed gate for its next probe. Each further wait is twice as long. */
  parkedSeconds: 10,
  /** Attempts after which a record that the service never listed is tombstoned. */
  notFoundAttemptsMax: 8,
  /** Attempts after which a state older than the event's is accepted, or an absence without proof. */
  olderStateAttemptsMax: 15,
  /** Attempts after which the readings of a range are accepted even though its event reported more. */
  shortfallAttemptsMax: 4,
  /** In an outage, the service is asked at least this often whether it answers again. */
  outageProbedSeconds: 60,
  /** A catch-up lags if its due work is older; it has stalled if the work is older than `waitMaxSeconds`. */
  lagSeconds: 60,
} as const;

/** Total seconds of this many waits, each twice the one before, up to the longest. */
function secondsOfWaits(count: number, first: number, longest: number): number {
  return Array.from({ length: count }, (_, at) => Math.min(first * 2 ** at, longest)).reduce(
    (a, b) => a + b,
    0,
  );
}

const { waitFirstSeconds, waitMaxSeconds } = recordPolicy;
const { initialInterval, maximumInterval, maximumAttempts } = activityPolicy.starting.retry;

/** How long work is tried, in words. The time that the attempts themselves take is not included. */
export const triedFor = {
  notFound: formatSeconds(secondsOfWaits(recordPolicy.notFoundAttemptsMax, waitFirstSeconds, waitMaxSeconds)),
  olderState: formatSeconds(
    secondsOfWaits(recordPolicy.olderStateAttemptsMax, waitFirstSeconds, waitMaxSeconds),
  ),
  parked: `${formatSeconds(recordPolicy.parkedSeconds)} to ${formatSeconds(waitMaxSeconds)}`,
  backfill: formatSeconds(
    secondsOfWaits(maximumAttempts - 1, initialInterval / seconds, maximumInterval / seconds),
  ),
} as const;

/** The doctor reports what it sees, and does not wait until a failure is over. */
export const doctorPolicy = {
  /** Requests to the service are tried once. */
  requests: { budget: { attemptsMax: 1, waitMaxMs: 0 }, timeoutMs: 15 * seconds },
  /** Time-out of the answer to a probe, as long as the service waits for a delivery (service.md 4.1.2). */
  probeAnswerMs: 15 * seconds,
  probeArrivesMs: 15 * seconds,
  probeLookEveryMs: 200,
} as const;

/** Starts of `applyEvents`. The first failure is tried again soon, a lasting failure about once a second. */
export const startPolicy = {
  pauseFirstMs: 100,
  pauseMaxMs: 1 * seconds,
  /** After this many failed attempts in a row, the receiver is not ready until `failForMs` after the last. */
  failedInARow: 3,
  failForMs: 15 * seconds,
} as const;

/** Connections to Postgres and Temporal. */
export const serverWaits = {
  /** Opening a connection to Postgres. */
  postgresConnectMs: 10 * seconds,
  /** Silence on such a connection after which the kernel probes it. It is closed after another 10 s. */
  postgresSilentMs: 30 * seconds,
  /** Longest wait for a lock. Without it, each try would occupy another connection. */
  lockMs: 30 * seconds,
  /**
   * A migration waits only shortly for a lock of a table in use, because a waiting lock also delays new users
   * of the table. The first wait is shorter than anybody notices, the last is longer than a vacuum needs to
   * give way. All tries take 30 s.
   */
  migration: { lockTimeoutFirstMs: 100, lockTimeoutMaxMs: 5 * seconds, pauseMs: 2 * seconds, tries: 8 },
  /** How long applying typed views waits for queries that read them. New queries wait meanwhile. */
  typedViewsLockMs: 2 * seconds,
  temporalConnectMs: 10 * seconds,
  /** Longest wait of a client that lost Temporal before it connects again. */
  temporalReconnectMs: 2 * seconds,
  /** When a process starts: time from one look for a server to the next. */
  lookEveryMs: 1 * seconds,
  /** Time-out of a check whether Temporal answers. A busy machine takes a while. */
  temporalLookMs: 5 * seconds,
  /** How long Temporal may refuse requests at a start. Its namespace needs some seconds. */
  temporalRefusedForMs: 10 * seconds,
  /** When a worker stops: time that running activities have to finish, and time until they are ended. */
  workerStop: { shutdownGraceTime: 5 * seconds, shutdownForceTime: 8 * seconds },
  /**
   * How long a command or a page waits for the first answer of Postgres or Temporal, because a person is
   * waiting. A caller that needs both asks both at the same time.
   */
  answerMs: 2 * seconds,
  /**
   * The same if a server that missed its first answer is asked again before it counts as away, because a busy
   * machine answers late. Pages do not ask again: they are renewed.
   */
  answerAgainMs: 5 * seconds,
  /** The same for a server that is asked only because the other did not answer. */
  secondAnswerMs: 1 * seconds,
  /** How long the end of a command waits for connections to close, because a server that hangs closes none. */
  closeMs: 200,
  /** Time-out of a health page or a monitor, for each server. */
  healthWithinMs: 5 * seconds,
  /** Time-out of everything that health asks Postgres: as long as opening a connection may take. */
  healthInAllMs: 10 * seconds,
} as const;

/** When health is bad enough for an alarm. */
export const alarmPolicy = {
  /** A run is overdue after this many intervals of its schedule without a complete run. */
  runOverdueIntervals: 1.5,
  /** A run that stores no page for this long is stuck. */
  runStalledSeconds: 1_800,
  /** How long before its expiry a certificate has to be renewed. */
  certificateSeconds: 14 * 86_400,
} as const;

/** The private port of a process, and what it reports. */
export const monitorPolicy = {
  /** How long one reading of the deployment's health answers scrapes and `/readyz`. */
  healthForMs: 10 * seconds,
  /** Time-out of a scrape of Temporal's own exporter, on this machine. */
  temporalMetricsWithinMs: 1 * seconds,
  /** Time-out of `metersync healthcheck`: containers ask every few seconds. */
  checkWithinMs: 4 * seconds,
  /**
   * Time-out of the first answer of Postgres and Temporal. It is shorter than `checkWithinMs`, so that
   * `/readyz` can say which of them does not answer.
   */
  answerMs: 3 * seconds,
} as const;

/** The console. */
export const consolePolicy = {
  /** If Postgres needs longer for a page, the page says so instead. */
  statementMs: 5 * seconds,
  /** If a page takes longer, the console asks whether Postgres answers at all: `serverWaits.answerMs`. */
  askAfterMs: 500,
  /** How often an open page renews its live parts. */
  renewMs: 5 * seconds,
  /** For how long the health that one page read is used for other pages. */
  healthForMs: 4 * seconds,
  /** How long a request waits for the end of its action, which continues without it. */
  actionShownMs: 3 * seconds,
} as const;

/** Computing the months of companies that changed, each minute. */
export const monthsPolicy = {
  /** How long one turn goes on: far shorter than the watch may take. */
  budgetSeconds: 20,
} as const;

/** The watch, and the notifications of what it finds. */
export const notifyPolicy = {
  /** The watch counts as stopped if its last run is older than this. */
  heartbeatMaxSeconds: 300,
  /** How often receivers report refusals, and how long after the last report they count as over. */
  refusedEveryMs: 60 * seconds,
  /** Time-out of the last report of a receiver that stops: it delays the stop. */
  refusedLastMs: 2 * seconds,
  refusedSeconds: 600,
  /** Time-out of one request to a target or to HEARTBEAT_URL. */
  requestMs: 10 * seconds,
  /** How long one run of the watch goes on sending to a target: far shorter than it may take. */
  sendMs: 10 * seconds,
  /** For how long an alarm that is over is still sent. */
  giveUpSeconds: 86_400,
  /** A target counts as failing if an alarm could not be sent to it for this long. */
  unsentMaxSeconds: 600,
  /** How long closed alarms are kept. */
  keepDays: 90,
} as const;
