/** Limits calls to one per `everyMs` and drops the others, where the next value replaces the last. */
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
