import { AsyncLocalStorage } from 'node:async_hooks';
import { isDeepStrictEqual } from 'node:util';
import { Context } from '@temporalio/activity';
import { attemptPolicy } from '../contract/retry-policy.ts';

/** Where another attempt resumes, and the attempt that came as far. */
interface Place {
  readonly cursor: unknown;
  readonly attempt: number;
}

const places = new WeakMap<Context, Place | undefined>();

/** Notes where another attempt resumes. Only the next heartbeat reports it, because each has a cost. */
export function noteCursor(cursor: unknown): void {
  const context = Context.current();
  if (isDeepStrictEqual(places.get(context)?.cursor, cursor)) return;
  places.set(context, { cursor, attempt: context.info.attempt });
}

/** Returns where an earlier attempt of this activity stopped; undefined if it noted nothing. */
export const resumedCursor = (): unknown =>
  (Context.current().info.heartbeatDetails as Place | undefined)?.cursor;

/** How often this place was tried, this attempt included. An attempt that gets further begins to count anew. */
export function triesHere(): number {
  const context = Context.current();
  const { attempt, heartbeatDetails } = context.info;
  const place = places.get(context) ?? (heartbeatDetails as Place | undefined);
  return attempt - (place?.attempt ?? 1) + 1;
}

/** Sends heartbeats with the last cursor while an activity works or waits, and a last one when it fails. */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  if (context.info.heartbeatTimeoutMs === undefined) return await work();
  places.set(context, context.info.heartbeatDetails);
  const send = () => context.heartbeat(places.get(context));
  const timer = setInterval(send, attemptPolicy.heartbeatEveryMs);
  try {
    return await work();
  } catch (error) {
    send();
    throw error;
  } finally {
    clearInterval(timer);
  }
}

const limited = new AsyncLocalStorage<AbortSignal>();

/** The signal that ends the work of this activity, or of the part of it that has a limit. */
export const cancellation = (): AbortSignal => limited.getStore() ?? Context.current().cancellationSignal;

/** Does a part of an activity's work that ends after `limitMs`. */
export const within = <T>(limitMs: number, work: () => Promise<T>): Promise<T> =>
  limited.run(AbortSignal.any([Context.current().cancellationSignal, AbortSignal.timeout(limitMs)]), work);
