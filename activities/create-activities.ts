import { backfillActivities } from './backfill/backfill.ts';
import { checkActivities, monthActivities } from './checks.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { recordActivities } from './events.ts';
import { retentionActivities } from './retention.ts';
import { runActivities } from './runs.ts';
import { createOwnerReads } from './sweep/owner-reads.ts';
import { endedActivities, sweepActivities } from './sweep/sweep.ts';
import { watchActivities } from './watch.ts';

/** Composes all activities of a worker. Workflows import only its type. */
export function createActivities(deps: ActivityDependencies) {
  const reads = createOwnerReads(deps);
  return {
    ...recordActivities(deps, reads),
    ...sweepActivities(deps, reads),
    ...endedActivities,
    ...backfillActivities(deps),
    ...runActivities(deps),
    ...retentionActivities(deps),
    ...checkActivities(deps),
    ...monthActivities(deps),
    ...watchActivities(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;
