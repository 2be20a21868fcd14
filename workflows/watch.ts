import { CancellationScope, log, patched } from '@temporalio/workflow';
import type { LookResult } from '../activities/watch.ts';
import { type CatchUpKind, catchUpKinds } from '../contract/names.ts';
import { eachMinute, looking } from './activity-options.ts';

/**
 * Looks after the deployment once a minute. A part that fails is tried again in the next minute, and no part
 * waits for another.
 */
export async function watch({ test = false }: { test?: boolean } = {}): Promise<LookResult> {
  const waking = new CancellationScope();
  const [looked, woken, kept] = await Promise.allSettled([
    looking.look({}).then((result) => {
      // A server that accepts connections and does not answer would delay the next run.
      if (result.absence !== null) waking.cancel();
      return result;
    }),
    waking.run(startLost),
    // Runs of version 0.1.0 that tested targets left this out.
    test ? undefined : waking.run(() => eachMinute.keepMonths({})),
  ]);
  if (woken.status === 'rejected') log.warn('the sweep was not started: the next minute tries again');
  if (kept.status === 'rejected') log.warn('not all months were kept: the next minute tries again');
  if (looked.status === 'rejected') throw looked.reason;
  return looked.value;
}

/** Starts the sweep, which reads whatever is due, and ends runs that lost their workflow. */
async function startLost(): Promise<void> {
  if (patched('sweep')) await eachMinute.startSweep({});
  else {
    // A run of version 0.2 that began before an update.
    const kinds: CatchUpKind[] = [];
    for (const kind of catchUpKinds) {
      const due = await eachMinute.dueOwners({ kind, limit: 1 });
      if (due.length > 0) kinds.push(kind);
    }
    if (kinds.length > 0) await eachMinute.wakeCatchUps({ kinds });
  }
  await eachMinute.endLostRuns({});
}
