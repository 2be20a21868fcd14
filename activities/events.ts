import { Context } from '@temporalio/activity';
import type { EventGroup } from '../contract/delivery.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { type Recorded, recordEvents } from '../db/events/record-events.ts';
import { noteRefused } from '../db/watch/refused.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

const nothingRecorded = { fresh: 0, duplicates: 0, dead: 0, wake: [] } as const;

export function recordActivities(deps: ActivityDependencies) {
  return {
    /** Journals and applies a group of events in one transaction; idempotent on event ids. */
    recordGroup: mapFailures(
      async ({ events, replay, refused }: EventGroup): Promise<Omit<Recorded, 'written'>> => {
        if (refused !== undefined) await noteRefused(deps.warehouse.db, refused);
        if (events.length === 0) return nothingRecorded;
        const workflow = Context.current().info.workflowExecution;
        const { warehouse } = deps;
        const { written, ...recorded } = await recordEvents(warehouse.db, events, { workflow, replay });
        for (const resource of ['connections', 'documents'] as const)
          deps.onWritten?.({ resource, by: 'event', ...written[resource], rejected: 0 });
        if (recorded.dead > 0) {
          deps.log.warn(
            { dead: recorded.dead },
            'events that cannot be applied are kept as dead in metersync.events',
          );
        }
        return recorded;
      },
      // The receiver acknowledged these events, so the service will not send them again.
      { giveUp: false },
    ),

    wakeCatchUps: mapFailures(async ({ kinds }: { kinds: readonly CatchUpKind[] }): Promise<void> => {
      await Promise.all(kinds.map((kind) => deps.wake(kind)));
    }),
  };
}
