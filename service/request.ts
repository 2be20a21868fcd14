import { Failure } from '../contract/failures.ts';
import { limits } from '../contract/limits.ts';
import { requestPolicy } from '../contract/retry-policy.ts';
import { failureOfError, failureOfStatus, retryAfterMs } from './classify.ts';
import { type RequestResult, resultOfError } from './request-result.ts';
import { createRetry } from './retry.ts';
import { type Answer, send, type Wire } from './send.ts';
import { createThrottle, type Lane, type Pace } from './throttle.ts';
import type { ServiceClientOptions } from './wire.ts';

export interface Get<T> {
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
  options: ServiceClientOptions,
): Requests {
  const { clock, random, log, onRequest } = options;
  const { maxConcurrency = limits.requestsAtOnce, budget = requestPolicy } = options;
  const throttle = createThrottle({
    concurrency: maxConcurrency,
    clock,
    random,
    log,
  });
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
      const failure = named(error, path);
      report(resultOfError(failure));
      throw failure;
    } finally {
      release?.();
    }
  }

  function requireSuccess(answer: Answer): void {
    const code = failureOfStatus(answer.status);
    if (code === null) return;
    throw new Failure(code, `answered ${answer.status} with ${quote(answer)}`, {
      status: answer.status,
      ...asked(retryAfterMs({ ...answer, now: clock.now() })),
    });
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

/** Adds what was requested to a failure. Returns any other error, a defect of metersync, unchanged. */
function named(error: unknown, request: string): unknown {
  if (error instanceof Failure) {
    const { code, status, retryAfterMs: wait } = error;
    return new Failure(code, `GET ${request}: ${error.message}`, {
      ...(status === undefined ? {} : { status }),
      ...asked(wait),
    });
  }
  const code = failureOfError(error);
  if (code === undefined || !(error instanceof Error)) return error;
  return new Failure(code, `GET ${request}: ${error.message}`, { cause: withoutAnswer(error) });
}

/** Copies a parser's error without its other properties, which may contain the answer. */
export function withoutAnswer(error: Error): Error {
  const plain = new Error(error.message);
  if (error.stack !== undefined) plain.stack = error.stack;
  return Object.assign(plain, { name: error.name, code: (error as { code?: unknown }).code });
}

function asked(wait: number | undefined): { retryAfterMs?: number } {
  return wait === undefined ? {} : { retryAfterMs: wait };
}
