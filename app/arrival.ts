import type { Arrival } from './running.ts';

/** The arrival of what a search looks for, which ends when it is there, and when `stopping` aborts it. */
export function arrivalOf(
  searched: Promise<void>,
  stopping: AbortController,
  isThere: () => boolean,
): Arrival {
  const arrived = searched.catch((error: unknown) => {
    if (stopping.signal.aborted) return new Promise<void>(() => {});
    throw error;
  });
  // Whoever waits for it is told; that nobody does yet is no failure of its own.
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
