/** Makes a function that reads at most once in `forMs`; callers share a reading. `now` never goes back. */
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
