import { Context } from '@temporalio/activity';
import { batches } from '../contract/limits.ts';
import { dropOldParts } from '../db/backfill/retention.ts';
import type { Database } from '../db/connect.ts';
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
      const events = await dropOldPayloads(db, ofEvents);
      if (events > 0)
        deps.log.info({ events, days: ofEvents }, 'payloads of old events were dropped from the journal');
      const parts = await inBatches(ofRuns, (batch) => dropOldParts(db, batch));
      if (parts > 0) deps.log.info({ parts, days: ofRuns }, 'old parts of runs were dropped');
      return { events, parts };
    }),
  };
}

/** Drops payloads older than `days`, from the oldest event to the newest; 0 days keep everything. */
async function dropOldPayloads(db: Database, days: number): Promise<number> {
  if (days === 0) return 0;
  const { cancellationSignal } = Context.current();
  let all = 0;
  let after: string | null = null;
  do {
    cancellationSignal.throwIfAborted();
    const { dropped, last } = await dropPayloads(db, { days, limit: batches.rowsDropped, after });
    all += dropped;
    after = last;
  } while (after !== null);
  return all;
}

/** Drops what is older than `days` until a batch is not full; 0 days keep everything. */
async function inBatches(
  days: number,
  drop: (batch: { days: number; limit: number }) => Promise<number>,
): Promise<number> {
  if (days === 0) return 0;
  const { cancellationSignal } = Context.current();
  const limit: number = batches.rowsDropped;
  let all = 0;
  for (let dropped = limit; dropped === limit; all += dropped) {
    cancellationSignal.throwIfAborted();
    dropped = await drop({ days, limit });
  }
  return all;
}
