import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import pMap from 'p-map';
import PQueue from 'p-queue';
import { type EventGroup, eventKinds } from '../contract/event.ts';
import { drainBounds } from '../contract/limits.ts';
import { attemptPolicy } from '../contract/retry-policy.ts';
import { withoutStatement } from '../db/connection/failures.ts';
import { type Recorded, recordEvents } from '../db/events/record.ts';
import { anyPending, type PendingRecords, pendingAmong } from '../db/queue/due.ts';
import { noteRefused } from '../db/watch/refused.ts';
import { cancellation, within } from './activity-context.ts';
import { atMostEvery } from './at-most-every.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { closeIfRefused } from './gates.ts';
import { asFailure, mapFailures } from './map-failures.ts';
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

/**
 * Makes the function that reads the records of recorded events once, if they are few and few groups are read. It
 * never fails and nothing waits for a turn or for longer than the limit, because the sweep reads what is left; it
 * returns whether anything may be.
 */
export function createDrain(deps: ActivityDependencies, reads: OwnerReads) {
  // Recording does not wait for a connection, so neither does this.
  const { db } = deps.warehouse;
  let drains = 0;

  const readOwner = async ({
    kind: of,
    owner,
    records,
    changed,
    now,
    closed,
  }: PendingRecords): Promise<void> => {
    const kind = eventKinds[of].plural;
    // A second walk over the owner's listing would only make both slower.
    if (cancellation().aborted || reads.isWalking({ kind, owner })) return;
    try {
      const deleted = records.filter((id) => !changed.includes(id));
      await reads.read({ kind, owner }, { records: { readAt: now, due: records, deleted, closed } });
    } catch (error) {
      // The sweep reads the records again, and finds out why. Without a valid key, no request makes sense.
      const failure = asFailure(error);
      if (failure !== undefined) await closeIfRefused(deps, failure);
    }
  };

  const readAll = async (eventIds: readonly string[]): Promise<{ left: boolean }> => {
    const pending = await pendingAmong(db, eventIds);
    const count = pending.reduce((sum, { records }) => sum + records.length, 0);
    if (count > 0 && count <= drainBounds.records)
      await pMap(pending, readOwner, { concurrency: drainBounds.owners });
    return { left: await anyPending(db, eventIds) };
  };

  return async (eventIds: readonly string[]): Promise<{ left: boolean }> => {
    if (drains >= drainBounds.atOnce) return { left: true };
    drains += 1;
    const { limitMs } = drainBounds;
    const read = within(limitMs, () => readAll(eventIds))
      .catch((error: unknown) => {
        deps.log.warn({ err: withoutStatement(error) }, 'recorded events are left to the sweep');
        return { left: true };
      })
      .finally(() => {
        drains -= 1;
      });
    // Requests end at the limit. A statement that waits for a lock goes on, and keeps its place.
    return await Promise.race([read, delay(limitMs, { left: true }, { ref: false })]);
  };
}
