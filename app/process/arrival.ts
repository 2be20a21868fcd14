import type { Arrival } from './running.ts';

/** Makes an arrival of a search, which ends when its target is there or when `stopping` aborts it. */
export function arrivalOf(
  searched: Promise<void>,
  stopping: AbortController,
  isThere: () => boolean,
): Arrival {
  const arrived = searched.catch((error: unknown) => {
    if (stopping.signal.aborted) return new Promise<void>(() => {});
    throw error;
  });
  // Callers that wait get the error; without any, it must not count as an unhandled rejection.
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
