/** Time as a dependency: real in a process, virtual in tests. */
export interface WallClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Rejects at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
