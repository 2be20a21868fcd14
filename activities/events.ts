import { Context } from '@temporalio/activity';
import PQueue from 'p-queue';
import type { EventGroup } from '../contract/event.ts';
import { drainBounds } from '../contract/limits.ts';
import { attemptPolicy } from '../contract/retry-policy.ts';
import { type Recorded, recordEvents } from '../db/events/record.ts';
import { noteRefused } from '../db/watch/refused.ts';
import { atMostEvery } from './at-most-every.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';
import { createDrain } from './sweep/drain.ts';
import type { OwnerReads } from './sweep/owner-reads.ts';

type WaitingGroup = EventGroup & {
  /** How long the group waited for a worker, by Temporal's clock. */
  readonly waitedMs?: number;
};

/** How a group was recorded, as the history of its workflow has it. */
type RecordedGroup = Pick<Recorded, 'fresh' | 'duplicates' | 'dead'>;

export function recordActivities(deps: ActivityDependencies, reads: OwnerReads) {
  const recordings = new PQueue({ concurrency: drainBounds.recordings });
  const drain = createDrain(deps, reads);
  const startSweep = atMostEvery(attemptPolicy.sweepStartedEveryMs, deps.now, deps.startSweep);

  return {
    /**
     * Journals and applies a group of events in one transaction, idempotent on event ids. As a local activity it
     * then reads the records of a small group, which saves a round trip through Temporal. If the group waited
     * long to be recorded, the worker has much to do: the sweep reads more records together.
     */
    recordGroup: mapFailures(
      async ({ events, replay, refused, waitedMs = 0 }: WaitingGroup): Promise<RecordedGroup> => {
        if (refused !== undefined) await noteRefused(deps.warehouse.db, refused);
        if (events.length === 0) return { fresh: 0, duplicates: 0, dead: 0 };
        const beganMs = deps.now();
        const { isLocal, workflowExecution: workflow } = Context.current().info;
        const record = () => recordEvents(deps.warehouse.db, events, { workflow, replay, drains: true });
        const signal = Context.current().cancellationSignal;
        const recorded = isLocal ? await recordings.add(record, { signal }) : await record();
        const { fresh, duplicates, dead, mayWait, written } = recorded;
        for (const resource of ['connections', 'documents'] as const)
          deps.onWritten?.({ resource, by: 'event', ...written[resource], rejected: 0 });
        if (dead > 0)
          deps.log.warn({ dead }, 'events that cannot be applied are kept as dead in metersync.events');
        if (!mayWait) return { fresh, duplicates, dead };
        const isQuick = isLocal && waitedMs + deps.now() - beganMs <= drainBounds.recordedWithinMs;
        const { left } = isQuick ? await drain(events.map(({ id }) => id)) : { left: true };
        if (left) await startSweep(undefined);
        return { fresh, duplicates, dead };
      },
      // The receiver acknowledged these events, so the service will not send them again.
      { giveUp: false },
    ),
  };
}
