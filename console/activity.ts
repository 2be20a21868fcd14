/** What this console is doing and has done, in addition to the log of operations. */
export interface Activity {
  /** How far operations under way have come, by their ids. */
  readonly progress: Map<number, string>;
  /** Actions under way, which a stop waits for. */
  readonly running: Set<Promise<unknown>>;
}
