import { Context } from '@temporalio/activity';

/** Well inside the heartbeat timeout of workflows/activity-options.ts. */
const everyMs = 5_000;

const cursors = new WeakMap<Context, unknown>();

/** Tells Temporal that the activity lives and, when given, the cursor from which another attempt goes on. */
export function heartbeat(cursor?: unknown): void {
  const context = Context.current();
  if (cursor !== undefined) cursors.set(context, cursor);
  context.heartbeat(cursors.get(context));
}

/**
 * Keeps an activity known to be alive while it waits: for a slow answer, or for its turn at the service. A heartbeat
 * replaces the cursor of the one before, so the last cursor is told again each time.
 */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  if (context.info.heartbeatTimeoutMs === undefined) return await work();
  cursors.set(context, context.info.heartbeatDetails);
  const timer = setInterval(() => context.heartbeat(cursors.get(context)), everyMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
