/** Seed 6.4: seconds before each attempt, counted from the failure of the one before it. */
export const attemptDelaysSeconds = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000] as const;

/** Seconds to wait after attempt `number` (from 1) has failed; undefined after the last. */
export function delayAfterFailure(number: number): number | undefined {
  return attemptDelaysSeconds[number];
}
