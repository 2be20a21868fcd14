import { Context } from '@temporalio/activity';
import { batches } from '../contract/limits.ts';
import { dropOldParts } from '../db/backfill/retention.ts';
import { dropPayloads } from '../db/events/journal.ts';
import { forgetReads } from '../db/readings/ranges.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

type Dropped = Readonly<Record<'events' | 'parts', number>>;

export function retentionActivities(deps: ActivityDependencies) {
  return {
    /** Drops payloads and superseded parts older than `retentionDays`, unless that is 0. Returns how many. */
    dropPayloads: mapFailures(async (_: object): Promise<Dropped> => {
      const { db } = deps.warehouse;
      const days = deps.retentionDays;
      let after: string | null = null;
      const events = await inBatches(days > 0, async (limit) => {
        const { dropped, last } = await dropPayloads(db, { days, limit, after });
        after = last;
        return { dropped, more: last !== null };
      });
      if (events > 0) deps.log.info({ events, days }, 'payloads of old events were dropped from the journal');
      const parts = await inBatches(days > 0, async (limit) => {
        const dropped = await dropOldParts(db, { days, limit });
        return { dropped, more: dropped === limit };
      });
      if (parts > 0) deps.log.info({ parts, days }, 'old parts of runs were dropped');
      await inBatches(true, async (limit) => {
        const dropped = await forgetReads(db, limit);
        return { dropped, more: dropped === limit };
      });
      return { events, parts };
    }),
  };
}

/** Drops in batches, until there is no more. */
async function inBatches(
  wanted: boolean,
  drop: (limit: number) => Promise<{ dropped: number; more: boolean }>,
): Promise<number> {
  const { cancellationSignal } = Context.current();
  let all = 0;
  for (let more = wanted; more; ) {
    cancellationSignal.throwIfAborted();
    const batch = await drop(batches.rowsDropped);
    all += batch.dropped;
    more = batch.more;
  }
  return all;
}
