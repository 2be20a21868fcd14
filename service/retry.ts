import { Failure } from '../contract/failures.ts';
import { requestPolicy } from '../contract/retry-policy.ts';
import type { WallClock } from './clock.ts';
import { gateClosed, type Lane, type Throttle } from './throttle.ts';

/** How often one call is tried, and the maximum total of its waits: see `requestPolicy`. */
export interface RetryBudget {
  readonly attemptsMax: number;
  readonly waitMaxMs: number;
}

export interface Call<T> {
  /** One attempt, counted from 1. */
  readonly attempt: (number: number) => Promise<T>;
  readonly lane: Lane;
  readonly signal: AbortSignal | undefined;
  readonly onRetry: (failure: Failure) => void;
}

/**
 * Makes the function that tries until an attempt succeeds, fails permanently, or uses up the budget, with
 * exponential waits and full jitter. A 429, or a Retry-After, closes the gate for every request of the
 * client. Another 5xx may be about one record and delays only its own request.
 * @throws Failure of the last attempt, or SERVICE_BUSY when another request's 429 keeps the gate closed
 *   beyond the budget; the signal's reason as soon as it aborts
 */
export function createRetry(options: {
  readonly throttle: Throttle;
  readonly clock: WallClock;
  readonly random: () => number;
  readonly budget: RetryBudget;
}): <T>(call: Call<T>) => Promise<T> {
  const { throttle, clock, random, budget } = options;
  const { backOffFirstMs, backOffMaxMs } = requestPolicy;

  /** Makes an attempt within the turn, so that the gate closes before the next request gets its turn. */
  async function settle<T>(call: Call<T>, number: number): Promise<Settled<T>> {
    try {
      const value = await call.attempt(number);
      throttle.succeeded();
      return { value };
    } catch (error) {
      if (!(error instanceof Failure) || error.action !== 'retry') throw error;
      const ceiling = Math.min(backOffFirstMs * 2 ** (number - 1), backOffMaxMs);
      if (error.code !== 'SERVICE_BUSY' && error.retryAfterMs === undefined) {
        return { failure: error, waitMs: random() * ceiling };
      }
      // At least half of the ceiling: a gate closed for no time would not slow anything down.
      throttle.closeFor(Math.max(error.retryAfterMs ?? 0, ceiling * (0.5 + random() / 2)));
      return { failure: error, waitMs: 0 };
    }
  }

  return async <T>(call: Call<T>): Promise<T> => {
    const { lane, signal, onRetry } = call;
    let waitedMs = 0;
    let last: Failure | undefined;
    const wait = async (ms: number, otherwise: Failure, spreadMs = 0): Promise<void> => {
      if (waitedMs + ms > budget.waitMaxMs) throw otherwise;
      waitedMs += ms;
      await clock.sleep(ms + spreadMs, signal);
    };

    for (let number = 1; ; ) {
      signal?.throwIfAborted();
      const closedMs = throttle.closedForMs();
      if (closedMs > 0) {
        await wait(closedMs, last ?? stillClosed(closedMs), throttle.spreadMs(lane));
        continue;
      }
      const settled = await throttle.turn(lane, signal, () => settle(call, number));
      if (settled === gateClosed) continue;
      if ('value' in settled) return settled.value;
      last = settled.failure;
      if (number >= budget.attemptsMax) throw last;
      number += 1;
      onRetry(last);
      if (settled.waitMs > 0) await wait(settled.waitMs, last);
    }
  };
}

type Settled<T> = { readonly value: T } | { readonly failure: Failure; readonly waitMs: number };

function stillClosed(ms: number): Failure {
  const seconds = Math.ceil(ms / 1000);
  return new Failure('SERVICE_BUSY', `not sent: the service asked every request to wait ${seconds} s more`, {
    retryAfterMs: Math.ceil(ms),
  });
}
