import { and, gt, inArray, isNull, lte, sql } from 'drizzle-orm';
import { isAmong } from '../connection/arrays.ts';
import { type Database, setLocal, withTransaction } from '../connection/connect.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';

export interface PayloadsDropped {
  readonly dropped: number;
  /** When the last event that was looked at was received; null when no later one is old enough. */
  readonly last: string | null;
}

/**
 * Of the `limit` oldest events with payloads received after `after` and more than `days` ago, drops
 * the payloads of settled events. Rows stay, so that a late delivery finds its id. Pending, dead
 * and missing events keep their bytes at any age, because no other copy exists.
 */
export async function dropPayloads(
  db: Database,
  { days, limit, after = null }: { days: number; limit: number; after?: string | null },
): Promise<PayloadsDropped> {
  const { id, receivedAt, payloadDroppedAt, outcome } = journal;
  const isOld = and(
    isNull(payloadDroppedAt),
    gt(receivedAt, sql`coalesce(${after}::timestamptz, '-infinity')`),
    sql`${receivedAt} < clock_timestamp() - make_interval(days => ${days}::int)`,
  );
  return await withTransaction(db, async (tx) => {
    // Otherwise the planner may sort all old events for each batch, for lack of good estimates.
    await setLocal(tx, { enable_sort: 'off', enable_bitmapscan: 'off', enable_seqscan: 'off' });
    const [end] = await tx
      .select({ last: receivedAt })
      .from(journal)
      .where(isOld)
      .orderBy(receivedAt)
      .offset(limit - 1)
      .limit(1);
    const dropped = await tx
      .update(journal)
      .set({ payloadDroppedAt: sql`clock_timestamp()` })
      .where(
        and(
          isOld,
          end && lte(receivedAt, end.last),
          inArray(outcome, ['applied', 'superseded', 'ignored']),
        ),
      )
      .returning({ id });
    const ids = dropped.map((event) => event.id);
    await tx.delete(eventPayloads).where(isAmong(eventPayloads.id, ids));
    return { dropped: ids.length, last: end?.last ?? null };
  });
}
