import { Failure } from '../contract/failures.ts';
import { failureOfError, failureOfStatus, retryAfterMs } from './classify.ts';
import { createCounter, type RequestCounts } from './counts.ts';
import { createRetry, defaultBudget } from './retry.ts';
import { type Answer, send, type Wire } from './send.ts';
import { createThrottle, type Lane } from './throttle.ts';
import { defaultConcurrency, type ServiceClientOptions } from './wire.ts';

export interface Get<T> {
  /** The name under which the request is counted. */
  readonly name: string;
  /** Relative to the versioned base address. */
  readonly path: string;
  readonly lane: Lane;
  readonly signal: AbortSignal | undefined;
  /** Reads a 200; an error that it throws fails the attempt. */
  readonly read: (answer: Answer) => T;
}

export interface Requests {
  get<T>(request: Get<T>): Promise<T>;
  counts(): Record<string, RequestCounts>;
}

/** Makes requests over a wire: throttled, retried and counted, with failures of the catalogue. */
export function createRequests(
  wire: Wire,
  quote: (text: string) => string,
  options: ServiceClientOptions,
): Requests {
  const { clock, random, log, maxConcurrency = defaultConcurrency, budget = defaultBudget } = options;
  const throttle = createThrottle({
    concurrency: maxConcurrency,
    perSecond: options.maxPerSecond,
    clock,
    random,
    log,
    shared: options.sharedLimit,
  });
  const retry = createRetry({ throttle, clock, random, budget });
  const counter = createCounter();

  async function attempt(name: string, path: string, signal: AbortSignal | undefined): Promise<Answer> {
    counter.add(name, { requests: 1 });
    const answer = await send(wire, { path }, signal);
    const code = failureOfStatus(answer.status);
    counter.add(name, { bytes: answer.bytes, busy: answer.status === 429 ? 1 : 0 });
    if (code === null) return answer;
    // A success is never quoted, not even 204, 206 and the like, which do not answer a read.
    const body = answer.status < 300 ? `${answer.text.length} characters` : quote(answer.text);
    throw new Failure(code, `answered ${answer.status} with ${body}`, {
      status: answer.status,
      ...asked(retryAfterMs({ ...answer, now: clock.now() })),
    });
  }

  return {
    get: async ({ name, path, lane, signal, read }) =>
      await retry({
        lane,
        signal,
        attempt: async () => {
          try {
            return read(await attempt(name, path, signal));
          } catch (error) {
            throw named(error, path);
          }
        },
        onRetry: (failure) => {
          counter.add(name, { retries: 1 });
          log.debug({ code: failure.code, retryAfterMs: failure.retryAfterMs }, failure.message);
        },
      }),
    counts: () => counter.read(),
  };
}

/** Adds the requested path to a failure. Returns any other error, a defect of metersync, unchanged. */
function named(error: unknown, path: string): unknown {
  if (error instanceof Failure) {
    const { code, status, retryAfterMs: wait } = error;
    return new Failure(code, `GET ${path}: ${error.message}`, {
      ...(status === undefined ? {} : { status }),
      ...asked(wait),
    });
  }
  const code = failureOfError(error);
  if (code === undefined || !(error instanceof Error)) return error;
  return new Failure(code, `GET ${path}: ${error.message}`, { cause: withoutAnswer(error) });
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
