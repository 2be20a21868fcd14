import { formatSeconds } from './times.ts';

/**
 * Every time-out, wait and number of tries, with its unit and its reason. Failed work is retried at three
 * levels, each far more patient than the one before:
 *
 * 1. `requestPolicy`: the client retries a request a few times, within a minute.
 * 2. `activityPolicy`: Temporal retries an activity for an hour, or until it succeeds.
 * 3. `recordPolicy`: a record that fails waits in metersync.stale_records, longer after each attempt.
 *
 * A refusal that holds for every request parks all work, with the back-off of level 3. Limits of size are in
 * limits.ts.
 */

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;

/**
 * Level 1. It is short on purpose: requests run inside activities that heartbeat, and Temporal retries the
 * activities.
 */
export const requestPolicy = {
  /** Of one attempt, from connecting to the last byte. */
  timeoutMs: 30 * seconds,
  /** Within that, of a proxy that opens a tunnel. */
  tunnelMs: 10 * seconds,
  /** How long an answer may wait for memory that others hold: their records are written within seconds. */
  memoryWaitMaxMs: 60 * seconds,
  attemptsMax: 4,
  /** How long the waits of one request may add up. */
  waitMaxMs: 60 * seconds,
  /** Ceiling of the wait before the second attempt; it doubles with each further one. */
  backOffFirstMs: 1 * seconds,
  backOffMaxMs: 16 * seconds,
  /** The longest Retry-After that is followed: a wrong header must not stop a sync for days. */
  retryAfterMaxMs: 1 * hours,
  /** When the gate opens, requests of a backfill return spread over this time: live requests go first. */
  backfillSpreadMs: 250,
} as const;

/** Temporal's retries: the first and the longest wait in milliseconds. Each wait is twice the one before. */
const doubling = (initialInterval: number, maximumInterval: number) => ({
  initialInterval,
  maximumInterval,
  backoffCoefficient: 2,
});

/** For work that the next run repeats: it fails sooner than a backfill. */
const fewRetries = { ...doubling(2 * seconds, 2 * minutes), maximumAttempts: 6 } as const;

/** A worker that is killed is noticed after this time. */
const heartbeatTimeout = 30 * seconds;

/**
 * Level 2, as Temporal's options. Permanent failures are marked non-retryable (see the failure catalogue), so
 * everything retried here can succeed later.
 */
export const activityPolicy = {
  /** First try of short work on the warehouse: within the workflow task, 1.3 times as fast as a remote one. */
  quickLocal: {
    startToCloseTimeout: 8 * seconds,
    retry: { initialInterval: 50, maximumAttempts: 2 },
  },
  /** The same work when the warehouse fails: retried until it succeeds, as no event may be lost. */
  quickUnlimited: { startToCloseTimeout: 1 * minutes, retry: doubling(500, 30 * seconds) },
  /** The watch: it ends before the next begins, which does again what failed. */
  eachMinute: {
    startToCloseTimeout: 40 * seconds,
    scheduleToCloseTimeout: 50 * seconds,
    retry: doubling(1 * seconds, 10 * seconds),
  },
  /** Reading the records that events named. */
  catchingUp: {
    startToCloseTimeout: 1 * hours,
    heartbeatTimeout,
    retry: doubling(1 * seconds, 1 * minutes),
  },
  /**
   * Reading a company to its end, each time from the page after the last one written. A worker that is killed
   * uses up an attempt, too.
   */
  backfilling: {
    startToCloseTimeout: 12 * hours,
    heartbeatTimeout,
    retry: { ...doubling(2 * seconds, 2 * minutes), maximumAttempts: 36 },
  },
  /** Reconciling, and dropping payloads. */
  recurring: { startToCloseTimeout: 1 * hours, heartbeatTimeout, retry: fewRetries },
  checking: { startToCloseTimeout: 6 * hours, heartbeatTimeout, retry: fewRetries },
  /** Writing the state of a run. */
  noting: { startToCloseTimeout: 30 * seconds, retry: doubling(500, 30 * seconds) },
  /** Waiting while another run reads a company: retries of an activity add nothing to the history. */
  waiting: {
    startToCloseTimeout: 30 * seconds,
    scheduleToCloseTimeout: 2 * hours,
    retry: { ...doubling(1 * seconds, 15 * seconds), backoffCoefficient: 1.5 },
  },
} as const;

/**
 * Time-outs of workflows that metersync's schedules start, longer than all tries of their activities. A run
 * that hangs would otherwise hold up the next one.
 */
export const ownRunsWithinMs = { watch: 10 * minutes, dropPayloads: 8 * hours } as const;

/** Within an activity. */
export const attemptPolicy = {
  /**
   * How often an activity sends its cursor, well inside the heartbeat time-out. Pages read since are read again
   * when its worker is killed.
   */
  heartbeatEveryMs: 3 * seconds,
  /** After so many attempts, some minutes in all, a failure of unclear cause counts as the item's own. */
  unclearMax: 8,
  /** Attempts to read a meter; the last that fails leaves it out of the backfill, if others can be read. */
  meterTries: 4,
  /** Passes over a listing before it is called unstable. */
  passesMax: 3,
  /** How long `metersync audit` waits before it reads a listing that differs again: most changes arrive within it. */
  settleMs: 5 * seconds,
  /** After so many waits that changed nothing, differences last: an audit waits no longer. */
  settlesMax: 3,
  /** How often a meter with many readings writes its progress. Nobody looks more often. */
  progressEveryMs: 1 * seconds,
  /** How long an activity of a backfill begins further companies or meters. Then the workflow goes on. */
  sliceMs: 20 * seconds,
  /** How long an event may be on its way before the change it should announce counts as missed. */
  eventOnItsWaySeconds: 300,
} as const;

/**
 * Level 3. The first wait of a stale record; each further one for the same reason is twice as long, up to
 * `waitMaxSeconds`.
 */
export const recordPolicy = {
  /** Days before today (UTC) whose updates a reconcile reads: the backfill of each night reads the rest. */
  reconciledDays: 2,
  waitFirstSeconds: 1,
  waitMaxSeconds: 900,
  /** Parked work waits at least so long, as another owner has its turn first; a parked service at first. */
  parkedSeconds: 10,
  /** Attempts after which a record that the service never listed is tombstoned. */
  notFoundAttemptsMax: 8,
  /** Attempts after which the service's older state is accepted, or its unproved absence. */
  olderStateAttemptsMax: 15,
  /** Attempts after which the readings of a range are accepted even though its event reported more. */
  shortfallAttemptsMax: 4,
  /** While an outage lasts, failed attempts follow one another within this time. */
  outageSeconds: 240,
  /** Age of due work from which its catch-up lags; from `waitMaxSeconds` on it has stalled. */
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
const { initialInterval, maximumInterval, maximumAttempts } = activityPolicy.backfilling.retry;

/** How long work is tried, in words, without the time that the attempts take themselves. */
export const triedFor = {
  notFound: formatSeconds(secondsOfWaits(recordPolicy.notFoundAttemptsMax, waitFirstSeconds, waitMaxSeconds)),
  olderState: formatSeconds(
    secondsOfWaits(recordPolicy.olderStateAttemptsMax, waitFirstSeconds, waitMaxSeconds),
  ),
  parked: `${formatSeconds(recordPolicy.parkedSeconds)} to ${formatSeconds(waitMaxSeconds)}`,
  turn: formatSeconds(activityPolicy.waiting.scheduleToCloseTimeout / seconds),
  backfill: formatSeconds(
    secondsOfWaits(maximumAttempts - 1, initialInterval / seconds, maximumInterval / seconds),
  ),
} as const;

/** The doctor reports what it sees and does not wait for better. */
export const doctorPolicy = {
  /** Requests to the service are tried once. */
  requests: { budget: { attemptsMax: 1, waitMaxMs: 0 }, timeoutMs: 15 * seconds },
  /** For the answer to a probe: the service gives up on a delivery after this time, too (service.md 4.1.2). */
  probeAnswerMs: 15 * seconds,
  probeArrivesMs: 15 * seconds,
  probeLookEveryMs: 200,
} as const;

/** Starts of `applyEvents`: the first failure is tried again soon, a lasting one about once a second. */
export const startPolicy = {
  pauseFirstMs: 100,
  pauseMaxMs: 1 * seconds,
  /** After so many failed attempts in a row, and for so long after the last, the receiver is not ready. */
  failedInARow: 3,
  failForMs: 15 * seconds,
} as const;

/** Connections to Postgres and Temporal. */
export const serverWaits = {
  /** Opening a connection to Postgres. */
  postgresConnectMs: 10 * seconds,
  /**
   * Silence on such a connection after which the kernel probes it. If it stays silent for another 10 s, it is
   * closed.
   */
  postgresSilentMs: 30 * seconds,
  /** Longest wait for a lock; without it each try would hold one more connection while the lock is held. */
  lockMs: 30 * seconds,
  /**
   * A migration waits shortly for tables in use, as a waiting lock also delays their new users: at first less
   * than anybody notices, at last longer than a vacuum needs to give way. 30 s in all.
   */
  migration: { lockTimeoutFirstMs: 100, lockTimeoutMaxMs: 5 * seconds, pauseMs: 2 * seconds, tries: 8 },
  /** How long applying the typed views may keep new queries waiting behind one that reads a view. */
  typedViewsLockMs: 2 * seconds,
  temporalConnectMs: 10 * seconds,
  /** Longest wait of a client that lost Temporal before it connects again. */
  temporalReconnectMs: 2 * seconds,
  /** At a start: time from one look for a server to the next. */
  lookEveryMs: 1 * seconds,
  /**
   * Time-out of a check whether Temporal answers. A busy machine takes a while; a refused connection fails at
   * once.
   */
  temporalLookMs: 5 * seconds,
  /** How long Temporal may refuse at a start: the server and its namespace need some seconds. */
  temporalRefusedForMs: 10 * seconds,
  /** When a worker stops: time that running activities have to finish, and time until they are ended. */
  workerStop: { shutdownGraceTime: 5 * seconds, shutdownForceTime: 8 * seconds },
  /** How long counts of fields wait in memory: they are lost when the process is killed. */
  fieldCountsEveryMs: 10 * seconds,
  /**
   * How long a command or a page waits for the first answer of Postgres or Temporal. With the start of the
   * command that is about three seconds, because a person is waiting. Whoever needs both asks them at once.
   */
  answerMs: 2 * seconds,
  /** The same for a server that is asked only because the other did not answer. */
  secondAnswerMs: 1 * seconds,
  /** How long the end of a command waits for connections to close, because a server that hangs closes none. */
  closeMs: 200,
  /** Time-out of a health page or a monitor, for each server. */
  healthWithinMs: 5 * seconds,
  /** Time-out of all that health asks of Postgres, and of noting a look: as long as opening a connection may take. */
  healthInAllMs: 10 * seconds,
} as const;

/** When health is bad enough for an alarm. */
export const alarmPolicy = {
  /** A run is overdue after so many intervals of its schedule without a complete one. */
  runOverdueIntervals: 1.5,
  /** A run that stores no page for so long hangs. */
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
  /** How long one reading of Temporal's metrics answers `/healthz`. */
  pollsForMs: 5 * seconds,
  /**
   * Time in which the worker of a queue has to begin another poll. A poll without work ends after a minute,
   * and a failed one is repeated within seconds: an outage of Temporal never makes a worker look dead.
   */
  pollWithinMs: 3 * minutes,
  /** Time-out of `metersync healthcheck`: containers ask every few seconds. */
  checkWithinMs: 4 * seconds,
  /** Time-out of the first answer of Postgres and Temporal: less, so that `/readyz` can say which is away. */
  answerMs: 3 * seconds,
} as const;

/** The console. */
export const consolePolicy = {
  /** A page that Postgres needs longer for says so instead. */
  statementMs: 5 * seconds,
  /** What takes longer to show has Postgres asked whether it is there: see `serverWaits.answerMs`. */
  askAfterMs: 500,
  /** How often a page that is looked at renews its live parts. */
  renewMs: 5 * seconds,
  /** For how long the health that one page read serves the others. */
  healthForMs: 4 * seconds,
  /** An action that takes longer goes on, and its page follows it. */
  actionShownMs: 3 * seconds,
} as const;

/** Keeping the months of companies, each minute. */
export const monthsPolicy = {
  /** How long one turn goes on: far less than a look may take. */
  budgetSeconds: 20,
} as const;

/** The watch, and the notifications of what it finds. */
export const notifyPolicy = {
  /** Age of its last run from which it counts as stopped. */
  heartbeatMaxSeconds: 300,
  /** How often receivers report what they refused, and after how long without a report it is over. */
  refusedEveryMs: 60 * seconds,
  refusedSeconds: 600,
  /** Of one request to a target or to HEARTBEAT_URL. */
  requestMs: 10 * seconds,
  /** How long one look goes on sending to a target: far less than a look may take. */
  sendMs: 10 * seconds,
  /** How long an alarm that is over is still sent. */
  giveUpSeconds: 86_400,
  /** Age of an alarm that could not be sent from which the target counts as failing. */
  unsentMaxSeconds: 600,
  /** How long closed alarms are kept. */
  keepDays: 90,
} as const;
