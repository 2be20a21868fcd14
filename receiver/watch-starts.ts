import { startPolicy } from '../contract/retry-policy.ts';
import type { Start } from './start-group.ts';

/** Watches whether Temporal takes events: while its disk is full, only starts fail. `now` only grows. */
export function watchStarts(start: Start, now: () => number): { readonly start: Start; fail(): boolean } {
  let failedInARow = 0;
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    start: async (request) => {
      try {
        await start(request);
        failedInARow = 0;
      } catch (error) {
        failedInARow += 1;
        failedAt = now();
        throw error;
      }
    },
    /**
     * Whether the last starts failed, which counts only for a while: a load balancer sends nothing to a
     * receiver that is not ready, so no start could succeed. After that time, one further failure is enough.
     */
    fail: () => failedInARow >= startPolicy.failedInARow && now() - failedAt < startPolicy.failForMs,
  };
}
