import { Context } from '@temporalio/activity';
import { attemptPolicy } from '../contract/retry-policy.ts';

const cursors = new WeakMap<Context, unknown>();

/** Notes where another attempt resumes. Only the next heartbeat reports it, because each has a cost. */
export function noteCursor(cursor: unknown): void {
  cursors.set(Context.current(), cursor);
}

/** Returns the last cursor that this activity noted, or an earlier attempt of it. */
export const notedCursor = (): unknown => cursors.get(Context.current());

/** Sends heartbeats with the last cursor while an activity works or waits, and a last one when it fails. */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  if (context.info.heartbeatTimeoutMs === undefined) return await work();
  cursors.set(context, context.info.heartbeatDetails);
  const send = () => context.heartbeat(cursors.get(context));
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
