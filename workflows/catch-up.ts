import {
  condition,
  continueAsNew,
  defineSignal,
  patched,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { catchUpBounds } from '../contract/limits.ts';
import { type CatchUpKind, signalNames } from '../contract/names.ts';
import { catchingUp, localFirst, quickLocal, quickUnlimited } from './activity-options.ts';
import { dealOut } from './sweep.ts';

export const wake = defineSignal(signalNames.wake);

/**
 * Of version 0.2, which read all due records of one kind with it. Runs that are left find nothing due (see
 * activities/sweep/sweep.ts), linger for a while and end. Removed in version 0.4.
 */
export async function catchUp({ kind }: { kind: CatchUpKind }): Promise<void> {
  let woken = false;
  let rounds = 0;
  setHandler(wake, () => {
    woken = true;
  });
  const { ownersPerChunk, chunksAtOnce, roundsPerRun } = catchUpBounds;
  for (;;) {
    woken = false;
    const most = { kind, limit: ownersPerChunk * chunksAtOnce };
    // A local activity runs within the workflow task, which saves a round trip through Temporal.
    const due = await localFirst(
      () => quickLocal.dueOwners(most),
      () => quickUnlimited.dueOwners(most),
    );
    if (due.length > 0) {
      const chunks = dealOut(due, chunksAtOnce);
      await Promise.all(chunks.map((chunk) => catchingUp.catchUpOwners({ kind, owners: chunk })));
      rounds += 1;
      // A signal that arrives meanwhile is not lost, because the next run begins by reading what is due.
      if (rounds >= roundsPerRun || workflowInfo().continueAsNewSuggested) {
        await continueAsNew<typeof catchUp>({ kind });
      }
      continue;
    }
    // While the service cannot be reached, no round ends and each wake-up adds to the history.
    if (workflowInfo().continueAsNewSuggested && patched('continue-without-rounds')) {
      await continueAsNew<typeof catchUp>({ kind });
    }
    const { asleep, dueInMs } = await localFirst(
      () => quickLocal.trySleep({ kind }),
      () => quickUnlimited.trySleep({ kind }),
    );
    if (asleep && !(await condition(() => woken, catchUpBounds.lingerMs))) return;
    if (dueInMs !== null && dueInMs > 0) await condition(() => woken, dueInMs);
  }
}
