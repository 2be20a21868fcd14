/** Time as an argument, so that deadlines are tested on a clock that the test moves. */
export interface Clock {
  /** Milliseconds from some moment, only ever growing: for deadlines, not for dates. */
  now(): number;
  /** Calls back once, `ms` from now at the earliest. The function it returns takes that back. */
  after(ms: number, callback: () => void): () => void;
  /** Calls back once this turn of the event loop is over: everything that came with it has been handled. */
  soon(callback: () => void): void;
}

/** The machine's monotonic clock, which no change of the date moves. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
  soon: (callback) => {
    setImmediate(callback);
  },
};
