import { startPolicy } from '../contract/retry-policy.ts';
import type { Start } from './start-group.ts';

/**
 * Watches whether Temporal takes events. While its disk is full, it answers every other request, but no start
 * succeeds.
 * @param now milliseconds of a clock that only grows
 */
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
     * Whether the last starts failed. They count only for a while: a load balancer that sends nothing to a
     * receiver that is not ready would otherwise never see the start that succeeds. After that time, one
     * further failure is enough.
     */
    fail: () => failedInARow >= startPolicy.failedInARow && now() - failedAt < startPolicy.failForMs,
  };
}
