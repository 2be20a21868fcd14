/** service.md 6.4: seconds before each attempt, counted from the failure of the previous attempt. */
const attemptDelaysSeconds = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000] as const;

/** Seconds to wait after attempt `number` (from 1) has failed, or undefined after the last attempt. */
function delayAfterFailure(number: number): number | undefined {
  return attemptDelaysSeconds[number];
}

/** service.md 3.2: an endpoint whose every attempt failed for this long is disabled. */
export const failingSecondsMax = 5 * 24 * 3600;

/**
 * Seconds from the failure of attempt `number` to the next, spread by up to `jitter` (0.2: ±20 %), so
 * that messages that failed together do not return together. `draw` is in [0, 1). Undefined after the last.
 */
export function retryDelaySeconds(number: number, jitter: number, draw: number): number | undefined {
  const delay = delayAfterFailure(number);
  return delay === undefined ? undefined : delay * (1 + jitter * (2 * draw - 1));
}
