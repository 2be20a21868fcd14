import { Context } from '@temporalio/activity';
import { dropPayloads } from '../db/events/retention.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

/** Events per statement, so that rows are locked for some milliseconds only. */
const eventsTogether = 1_000;

export function retentionActivities(deps: ActivityDependencies) {
  return {
    /**
     * Drops, in batches, the payloads of settled events older than `journalPayloadDays`. Returns how many.
     */
    dropPayloads: mapFailures(async (_: object): Promise<{ events: number }> => {
      const days = deps.journalPayloadDays;
      if (days === 0) return { events: 0 };
      const { cancellationSignal } = Context.current();
      let events = 0;
      for (let dropped = eventsTogether; dropped === eventsTogether; events += dropped) {
        cancellationSignal.throwIfAborted();
        dropped = await dropPayloads(deps.warehouse.db, { days, limit: eventsTogether });
      }
      if (events > 0) deps.log.info({ events, days }, 'payloads of old events were dropped from the journal');
      return { events };
    }),
  };
}
