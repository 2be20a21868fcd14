import { Failure, type FailureCode } from '../contract/failures.ts';
import { limits } from '../contract/limits.ts';
import type { Log } from '../contract/log.ts';
import { requestPolicy } from '../contract/retry-policy.ts';
import { failureOfStatus, retryAfterMs, withRequest } from './failures.ts';
import {
  createThrottle,
  gateClosed,
  type Lane,
  type Pace,
  type Throttle,
  type WallClock,
} from './throttle.ts';
import { type Answer, send, type Wire } from './wire.ts';

/** How a request to the service ended. `ended`: nobody needs its answer any more. */
type RequestResult =
  | 'ok'
  | 'busy'
  | 'error'
  | 'unreachable'
  | 'unreadable'
  | 'refused'
  | 'not_found'
  | 'ended';

const results: Partial<Record<FailureCode, RequestResult>> = {
  SERVICE_BUSY: 'busy',
  SERVICE_ERROR: 'error',
  SERVICE_UNREACHABLE: 'unreachable',
  SERVICE_ANSWER_UNREADABLE: 'unreadable',
  SERVICE_KEY_REFUSED: 'refused',
  SERVICE_ACCESS_DENIED: 'refused',
  SERVICE_REQUEST_REFUSED: 'refused',
  SERVICE_NOT_FOUND: 'not_found',
};

/** One request that ended, for measurements. */
export interface RequestFigures {
  /** The endpoint's name in the catalogue, or `ping`. */
  readonly endpoint: string;
  readonly result: RequestResult;
  readonly ms: number;
  /** Bytes of the answer's body on the wire. */
  readonly bytes: number;
}

export interface RequestOptions {
  readonly maxConcurrency?: number;
  readonly budget?: RetryBudget;
  readonly clock: WallClock;
  /** Returns a number from 0 to below 1, for jitter. */
  readonly random: () => number;
  readonly log: Pick<Log, 'debug' | 'warn'>;
  readonly onRequest?: (figures: RequestFigures) => void;
}

interface Get<T> {
  /** The endpoint's name in the catalogue, or `ping`: the request is reported under it. */
  readonly name: string;
  /** Relative to the versioned base address. */
  readonly path: string;
  readonly lane: Lane;
  readonly signal: AbortSignal | undefined;
  /** Reads the answer of status 200. If it throws an error, the attempt fails. */
  readonly read: (answer: Answer) => T;
  /** Receives the function that returns the answer's memory; by default it is returned after the read. */
  readonly hold?: ((release: () => void) => void) | undefined;
}

export interface Requests {
  get<T>(request: Get<T>): Promise<T>;
  pace(): Pace;
}

/** Makes requests over a wire: throttled, retried and reported, with failures of the catalogue. */
export function createRequests(
  wire: Wire,
  quote: (answer: Answer) => string,
  options: RequestOptions,
): Requests {
  const { clock, random, log, onRequest } = options;
  const { maxConcurrency: concurrency = limits.requestsAtOnce, budget = requestPolicy } = options;
  const throttle = createThrottle({ concurrency, clock, random, log });
  const retry = createRetry({ throttle, clock, random, budget });

  async function attempt<T>({ name, path, signal, read, hold }: Get<T>): Promise<T> {
    const startedAt = clock.now();
    let bytes = 0;
    const report = (result: RequestResult): void =>
      onRequest?.({ endpoint: name, result, ms: clock.now() - startedAt, bytes });
    let release: (() => void) | undefined;
    try {
      const answer = await send(wire, { path }, signal);
      ({ bytes, release } = answer);
      requireSuccess(answer);
      const value = read(answer);
      report('ok');
      if (hold !== undefined) {
        hold(release);
        release = undefined;
      }
      return value;
    } catch (error) {
      const failure = withRequest(error, `GET ${path}`);
      report((failure instanceof Failure ? results[failure.code] : undefined) ?? 'ended');
      throw failure;
    } finally {
      release?.();
    }
  }

  function requireSuccess(answer: Answer): void {
    const { status } = answer;
    const code = failureOfStatus(status);
    if (code === null) return;
    const wait = retryAfterMs({ ...answer, now: clock.now() });
    throw new Failure(code, `answered ${status} with ${quote(answer)}`, { status, retryAfterMs: wait });
  }

  return {
    get: async (request) =>
      await retry({
        lane: request.lane,
        signal: request.signal,
        attempt: async () => await attempt(request),
        onRetry: (failure) =>
          log.debug({ code: failure.code, retryAfterMs: failure.retryAfterMs }, failure.message),
      }),
    pace: () => throttle.pace(),
  };
}

/** How often one call is tried, and the maximum total of its waits: see `requestPolicy`. */
interface RetryBudget {
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
