import { serverWaits } from '../../contract/retry-policy.ts';
import { formatSeconds } from '../../contract/times.ts';

/** A part that runs until it is stopped. `finished` rejects if it fails. */
export interface Running {
  readonly finished: Promise<void>;
  /** Drains: accepted work is answered, finished or handed over. */
  stop(): Promise<void>;
}

/** Whether a server that a part needs was reachable at any time since the process began. */
export interface ServerWait {
  isThere(): boolean;
  /** Resolves when the server is there, never after `stop`. @throws Error that says why it will not be */
  readonly arrived: Promise<void>;
  stop(): Promise<void>;
}

/** Joins several waits. The joined wait ends when all servers are there. */
export const allOf = (waits: readonly ServerWait[]): ServerWait => {
  const arrived = Promise.all(waits.map((wait) => wait.arrived)).then(() => {});
  arrived.catch(() => {});
  return {
    isThere: () => waits.every((wait) => wait.isThere()),
    arrived,
    stop: async () => {
      await Promise.all(waits.map((wait) => wait.stop()));
    },
  };
};

/** Starts a part once the server that it needs is there, which may be never. */
export function whenThere(wait: ServerWait, start: () => Promise<Running>): Running {
  const started = wait.arrived.then(start);
  const finished = started.then((part) => part.finished);
  // Callers that wait get the error; a failure while everything stops must not be an unhandled rejection.
  finished.catch(() => {});
  return {
    finished,
    stop: async () => {
      await wait.stop();
      if (!wait.isThere()) return;
      const [part] = await Promise.allSettled([started]);
      if (part.status === 'fulfilled') await part.value.stop();
    },
  };
}

/** Makes a wait of a search, which ends when its target is there or when `stopping` aborts it. */
export function waitForServer(
  searched: Promise<void>,
  stopping: AbortController,
  isThere: () => boolean,
): ServerWait {
  const arrived = searched.catch((error: unknown) => {
    if (stopping.signal.aborted) return new Promise<void>(() => {});
    throw error;
  });
  // Callers that wait get the error. If nobody waits, it must not count as an unhandled rejection.
  arrived.catch(() => {});
  return {
    isThere,
    arrived,
    stop: async () => {
      stopping.abort();
      await Promise.allSettled([searched]);
    },
  };
}

/**
 * Asks a server. If it does not answer in time, asks once more and waits longer: one missed answer of a busy
 * server is not an outage. `late` is whether only the second answer came.
 */
export async function askAgain<T>(
  ask: (withinMs: number) => Promise<T>,
  withinMs: number = serverWaits.answerMs,
): Promise<{ readonly answer: T; readonly late: boolean }> {
  const { answerAgainMs } = serverWaits;
  try {
    return { answer: await ask(withinMs), late: false };
  } catch (missed) {
    if (!isMissed(missed)) throw missed;
    try {
      return { answer: await ask(answerAgainMs), late: true };
    } catch (again) {
      if (isMissed(again))
        again.message = `${missed.message}, nor within ${formatSeconds(answerAgainMs / 1_000)} when asked again`;
      throw again;
    }
  }
}

/** By its words, which `NoAnswer` and `TemporalAway` share: most callers must not load the client of Temporal. */
const isMissed = (error: unknown): error is Error =>
  error instanceof Error && /(^|: )no answer within/.test(error.message);
