/**
 * What workflows of version 0.2 call that still run after an update: nothing is due for them, and the sweep reads
 * the records instead, so they end. Removed in version 0.4.
 */
export const endedActivities = {
  dueOwners: async (_: { kind: string; limit: number }): Promise<string[]> => [],
  catchUpOwners: async (_: { kind: string; owners: readonly string[] }): Promise<void> => {},
  trySleep: async (_: { kind: string }): Promise<{ asleep: boolean; dueInMs: number | null }> => ({
    asleep: true,
    dueInMs: null,
  }),
  wakeCatchUps: async (_: { kinds: readonly string[] }): Promise<void> => {},
};
