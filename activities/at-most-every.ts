/** Passes on what it is told when `everyMs` have gone by since the last time, and drops it before: of numbers that only grow. */
export function atMostEvery<T>(
  everyMs: number,
  now: () => number,
  pass: (value: T) => Promise<void>,
): (value: T) => Promise<void> {
  let nextAt = Number.NEGATIVE_INFINITY;
  return async (value) => {
    if (now() < nextAt) return;
    nextAt = now() + everyMs;
    await pass(value);
  };
}
