import type { Fault } from './fault.ts';
import { createFaultRegistry, type FaultRegistry, type SetFault } from './registry.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

/** The active faults, with the snapshots of stale reads. */
export interface Faults {
  readonly registry: FaultRegistry;
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  set(fault: Fault): Promise<SetFault>;
  close(): Promise<void>;
}

export function createFaults(
  databaseUrl: string,
  nowMs: () => number,
  report: (error: Error) => void,
): Faults {
  const snapshots = new Map<string, Snapshot>();
  const closing = new Set<Promise<void>>();
  const ended = (id: string) => {
    const snapshot = snapshots.get(id);
    if (snapshot === undefined) return;
    snapshots.delete(id);
    const closed = snapshot.close().catch(report);
    closing.add(closed);
    void closed.finally(() => closing.delete(closed));
  };
  const registry = createFaultRegistry(nowMs, ended);
  return {
    registry,
    snapshots,
    async set(fault) {
      const snapshot = fault.kind === 'stale' ? await takeSnapshot(databaseUrl, report) : undefined;
      const set = registry.set(fault);
      if (snapshot !== undefined) snapshots.set(set.id, snapshot);
      return set;
    },
    async close() {
      registry.clear();
      await Promise.all(closing);
    },
  };
}
