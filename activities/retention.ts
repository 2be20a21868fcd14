import { Context } from '@temporalio/activity';
import { batches } from '../contract/limits.ts';
import { dropOldParts } from '../db/backfill/retention.ts';
import { dropPayloads } from '../db/events/retention.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

export function retentionActivities(deps: ActivityDependencies) {
  return {
    /**
     * Drops the payloads of settled events older than `journalPayloadDays`, and superseded parts of runs
     * older than `runsDays`. Returns how many.
     */
    dropPayloads: mapFailures(async (_: object): Promise<{ events: number; parts: number }> => {
      const { db } = deps.warehouse;
      const [ofEvents, ofRuns] = [deps.journalPayloadDays, deps.runsDays];
      let after: string | null = null;
      const events = await inBatches(ofEvents, async (batch) => {
        const { dropped, last } = await dropPayloads(db, { ...batch, after });
        after = last;
        return { dropped, more: last !== null };
      });
      if (events > 0)
        deps.log.info({ events, days: ofEvents }, 'payloads of old events were dropped from the journal');
      const parts = await inBatches(ofRuns, async (batch) => {
        const dropped = await dropOldParts(db, batch);
        return { dropped, more: dropped === batch.limit };
      });
      if (parts > 0) deps.log.info({ parts, days: ofRuns }, 'old parts of runs were dropped');
      return { events, parts };
    }),
  };
}

/** Drops what is older than `days`, in batches, until there is no more; 0 days keep everything. */
async function inBatches(
  days: number,
  drop: (batch: { days: number; limit: number }) => Promise<{ dropped: number; more: boolean }>,
): Promise<number> {
  if (days === 0) return 0;
  const { cancellationSignal } = Context.current();
  let all = 0;
  for (let more = true; more; ) {
    cancellationSignal.throwIfAborted();
    const batch = await drop({ days, limit: batches.rowsDropped });
    all += batch.dropped;
    more = batch.more;
  }
  return all;
}
