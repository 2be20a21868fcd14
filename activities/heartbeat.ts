import { Context } from '@temporalio/activity';
import { attemptPolicy } from '../contract/retry-policy.ts';

const cursors = new WeakMap<Context, unknown>();

/** Sends a heartbeat, with the cursor from which another attempt resumes: the given one, else the last. */
export function heartbeat(cursor?: unknown): void {
  const context = Context.current();
  if (cursor !== undefined) cursors.set(context, cursor);
  context.heartbeat(cursors.get(context));
}

/**
 * Sends heartbeats while an activity waits for a slow answer, or for its turn at the service. Each repeats
 * the last cursor, because a heartbeat replaces the details of the one before.
 */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  if (context.info.heartbeatTimeoutMs === undefined) return await work();
  cursors.set(context, context.info.heartbeatDetails);
  const timer = setInterval(() => context.heartbeat(cursors.get(context)), attemptPolicy.heartbeatEveryMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
