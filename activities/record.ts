import { Context } from '@temporalio/activity';
import type { EventGroup } from '../contract/delivery.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { type Recorded, recordEvents } from '../db/record/record-events.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { failing } from './failing.ts';

export type RecordResult = Recorded;

export function recordActivities(deps: ActivityDependencies) {
  return {
    /** Journal and effect of a group of events, in one transaction; idempotent on event ids. */
    recordGroup: failing(
      async ({ events, replay }: EventGroup): Promise<RecordResult> => {
        const workflow = Context.current().info.workflowExecution;
        const payloads = new Map<string, unknown[]>();
        const onPayload = (type: string, payload: unknown): void => {
          const same = payloads.get(type);
          if (same === undefined) payloads.set(type, [payload]);
          else same.push(payload);
        };
        const recording = { workflow, replay, onPayload };
        const recorded = await recordEvents(deps.warehouse.db, events, recording);
        for (const [type, same] of payloads) await deps.catalogue.note(`events/${type}`, 'webhooks', same);
        if (recorded.dead > 0) {
          deps.log.warn(
            { dead: recorded.dead },
            'events that cannot be applied are kept as dead in metersync.events',
          );
        }
        return recorded;
      },
      // These events were acknowledged: they are nowhere else.
      { giveUp: false },
    ),

    wakeCatchUps: failing(async ({ kinds }: { kinds: readonly CatchUpKind[] }): Promise<void> => {
      await Promise.all(kinds.map((kind) => deps.wake(kind)));
    }),
  };
}
