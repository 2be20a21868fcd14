import { Context } from '@temporalio/activity';
import { dropPayloads } from '../db/events/retention.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

/** Events whose payloads one statement drops: their rows are locked for some milliseconds. */
const eventsTogether = 1_000;

export function retentionActivities(deps: ActivityDependencies) {
  return {
    /** Drops what was signed of events that were settled long ago, little by little; returns how many. */
    dropPayloads: mapFailures(async (_: object): Promise<{ events: number }> => {
      const days = deps.journalPayloadDays;
      if (days === 0) return { events: 0 };
      const { cancellationSignal } = Context.current();
      let all = 0;
      for (let dropped = eventsTogether; dropped === eventsTogether; all += dropped) {
        cancellationSignal.throwIfAborted();
        dropped = await dropPayloads(deps.warehouse.db, { days, limit: eventsTogether });
      }
      if (all > 0)
        deps.log.info({ events: all, days }, 'payloads of old events were dropped from the journal');
      return { events: all };
    }),
  };
}
