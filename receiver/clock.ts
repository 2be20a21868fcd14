/** Time as an argument, so that tests can move the clock on which deadlines run. */
export interface MonotonicClock {
  /** Monotonic milliseconds from an arbitrary moment: for deadlines, not for dates. */
  now(): number;
  /** Calls back once, `ms` from now at the earliest. The returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** Calls back after this turn of the event loop, when everything that came with it was handled. */
  soon(callback: () => void): void;
}

/** The machine's monotonic clock, which changes of the date do not move. */
export const systemClock: MonotonicClock = {
  now: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
  soon: (callback) => {
    setImmediate(callback);
  },
};

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
