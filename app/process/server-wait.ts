import type { ServerWait } from './running.ts';

/** Makes a wait of a search, which ends when its target is there or when `stopping` aborts it. */
export function serverWait(
  searched: Promise<void>,
  stopping: AbortController,
  isThere: () => boolean,
): ServerWait {
  const arrived = searched.catch((error: unknown) => {
    if (stopping.signal.aborted) return new Promise<void>(() => {});
    throw error;
  });
  // Callers that wait get the error. If nobody waits, it must not count as an unhandled rejection.
  arrived.catch(() => {});
  return {
    isThere,
    arrived,
    stop: async () => {
      stopping.abort();
      await Promise.allSettled([searched]);
    },
  };
}
