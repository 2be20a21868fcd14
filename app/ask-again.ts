import { serverWaits } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';

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
