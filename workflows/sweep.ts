import { condition, continueAsNew, isCancellation, log, sleep, workflowInfo } from '@temporalio/workflow';
import { sweepBounds } from '../contract/limits.ts';
import type { Queue } from '../contract/names.ts';
import { quickLocal, quickUnlimited, sweeping } from './activity-options.ts';
import { localFirst } from './local-first.ts';

/**
 * Reads the records of all due events. Lanes take the next owners, so that a slow one holds up no other. It
 * lives while something is due soon, and is started each minute, and when a read leaves an event.
 */
export async function sweep(): Promise<void> {
  const { lanes, ownersPerLane, soonMs, lookMinMs, lookMaxMs, roundsPerRun } = sweepBounds;
  const inWork = new Map<number, readonly Queue[]>();
  for (let round = 1; ; round += 1) {
    const free = lanes - inWork.size;
    const most = { limit: free * ownersPerLane, except: [...inWork.values()].flat() };
    // A local activity runs within the workflow task, which saves a round trip through Temporal.
    const { owners, dueInMs } = await localFirst(
      () => quickLocal.dueForSweep(most),
      () => quickUnlimited.dueForSweep(most),
    );
    for (const [lane, dealt] of dealOut(owners, free).entries()) {
      const place = round * lanes + lane;
      inWork.set(place, dealt);
      void sweepLane(dealt).finally(() => inWork.delete(place));
    }
    const working = inWork.size;
    if (working === 0 && (dueInMs === null || dueInMs > soonMs)) return;
    const { continueAsNewSuggested } = workflowInfo();
    if (continueAsNewSuggested || (round >= roundsPerRun && working === 0)) {
      await condition(() => inWork.size === 0);
      await continueAsNew<typeof sweep>();
    }
    const isLaneFree = () => inWork.size < working;
    if (working === lanes) await condition(isLaneFree);
    else {
      const waitMs = Math.min(Math.max(dueInMs ?? lookMaxMs, lookMinMs), lookMaxMs);
      await condition(isLaneFree, waitMs);
    }
  }
}

/** Reads the records of owners. After a failure they wait until another look, like owners that are read. */
async function sweepLane(owners: readonly Queue[]): Promise<void> {
  try {
    await sweeping.sweepOwners({ owners });
  } catch (error) {
    if (isCancellation(error)) return;
    log.warn('owners are left to another look', { error: String(error) });
    await sleep(sweepBounds.lookMaxMs);
  }
}

/** Distributes the owners evenly, in their order. */
export function dealOut<Owner>(owners: readonly Owner[], lanes: number): Owner[][] {
  const dealt = Array.from({ length: Math.min(lanes, owners.length) }, (): Owner[] => []);
  for (const [at, owner] of owners.entries()) dealt[at % lanes]?.push(owner);
  return dealt;
}
