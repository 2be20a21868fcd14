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
