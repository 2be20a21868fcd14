import { condition, continueAsNew, isCancellation, log, sleep, workflowInfo } from '@temporalio/workflow';
import { sweepBounds } from '../contract/limits.ts';
import type { Queue } from '../contract/names.ts';
import { localFirst, quickLocal, quickUnlimited, sweeping } from './activity-options.ts';

/**
 * Reads the records of all due events. Lanes take the next owners, so that a slow one holds up no other. It
 * lives while something is due soon, and is started each minute, and when a read leaves an event. It also asks
 * whether the service answers again while requests are held back.
 */
export async function sweep(): Promise<void> {
  const { lanes, ownersPerLane, soonMs, lookMinMs, lookMaxMs, roundsPerRun } = sweepBounds;
  const inWork = new Map<number, readonly Queue[]>();
  let probing = false;
  const inWorkOrProbing = () => inWork.size + Number(probing);
  for (let round = 1; ; round += 1) {
    const free = lanes - inWork.size;
    const most = { limit: free * ownersPerLane, except: [...inWork.values()].flat() };
    // A local activity runs within the workflow task, which saves a round trip through Temporal.
    const { owners, dueInMs, probes } = await localFirst(
      () => quickLocal.dueForSweep(most),
      () => quickUnlimited.dueForSweep(most),
    );
    for (const [lane, dealt] of dealOut(owners, free).entries()) {
      const place = round * lanes + lane;
      inWork.set(place, dealt);
      void attempt(sweepLane(dealt, (held) => inWork.set(place, held))).finally(() => inWork.delete(place));
    }
    if (probes.length > 0 && !probing) {
      probing = true;
      void attempt(sweeping.probeGates({ scopes: probes })).finally(() => {
        probing = false;
      });
    }
    const working = inWorkOrProbing();
    if (working === 0 && (dueInMs === null || dueInMs > soonMs)) return;
    const { continueAsNewSuggested } = workflowInfo();
    if (continueAsNewSuggested || (round >= roundsPerRun && working === 0)) {
      await condition(() => inWorkOrProbing() === 0);
      await continueAsNew<typeof sweep>();
    }
    const isLaneFree = () => inWorkOrProbing() < working;
    if (inWork.size === lanes) await condition(isLaneFree);
    else {
      const waitMs = Math.min(Math.max(dueInMs ?? lookMaxMs, lookMinMs), lookMaxMs);
      await condition(isLaneFree, waitMs);
    }
  }
}

/** Reads due records of owners, and then the listings of an owner with very many of them. */
async function sweepLane(
  owners: readonly Queue[],
  holdOnly: (owners: readonly Queue[]) => void,
): Promise<void> {
  const { large } = await sweeping.sweepOwners({ owners });
  const [first] = large;
  if (first === undefined) return;
  holdOnly([first]);
  await sweeping.sweepOwners({ owners: [first], walks: true });
}

/** Waits for an activity of a lane. After a failure the lane waits, like the owners that it was to read. */
async function attempt(activity: Promise<void>): Promise<void> {
  try {
    await activity;
  } catch (error) {
    if (isCancellation(error)) return;
    log.warn('the sweep looks again later', { error: String(error) });
    await sleep(sweepBounds.lookMaxMs);
  }
}

/** Distributes the owners evenly, in their order. */
export function dealOut<Owner>(owners: readonly Owner[], lanes: number): Owner[][] {
  const dealt = Array.from({ length: Math.min(lanes, owners.length) }, (): Owner[] => []);
  for (const [at, owner] of owners.entries()) dealt[at % lanes]?.push(owner);
  return dealt;
}
