import { TemporalAway } from '../app/temporal/problem.ts';
import { serverWaits } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { NoAnswer } from '../db/connection/with-timeout.ts';

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

const isMissed = (error: unknown): error is Error =>
  error instanceof NoAnswer || (error instanceof TemporalAway && /^no answer within/.test(error.reason));
