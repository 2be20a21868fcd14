/**
 * Makes a function that reads at most once in `forMs`. Callers in between get the last result; callers at the
 * same time share one reading.
 * @param now milliseconds of a clock that only grows
 */
export function remember<T>(read: () => Promise<T>, forMs: number, now: () => number): () => Promise<T> {
  let last: Promise<T> | undefined;
  let until = 0;
  return () => {
    if (last !== undefined && now() < until) return last;
    until = Number.POSITIVE_INFINITY;
    last = read().finally(() => {
      // Counted from when the result is known, so that a slow reading is not repeated meanwhile.
      until = now() + forMs;
    });
    return last;
  };
}
