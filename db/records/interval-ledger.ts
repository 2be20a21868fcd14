import { and, eq, isNotNull, type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { intervalFetches, journal } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import { type ReadRange, readingsAcross } from './interval-key.ts';

/**
 * Notes that a meter or a range of it was read, and recounts events with too few readings. Returns
 * whether another read removed readings since `beganAt`: this read may have written some again.
 */
export async function noteFetched(
  db: Executor,
  { meterId, start, end }: { readonly meterId: string } & ReadRange,
  beganAt: string | null = null,
): Promise<boolean> {
  const fetched = sql`tstzrange(${start ?? null}::timestamptz, ${end ?? null}::timestamptz, '[]')`;
  const short = db
    .select({ id: journal.id })
    .from(journal)
    .where(
      and(
        eq(journal.recordId, meterId),
        isNotNull(journal.lacking),
        sql`tstzrange(${journal.rangeStart}, ${journal.rangeEnd}, '[]') <@ ${fetched}`,
      ),
    )
    .for('no key update', { skipLocked: true });
  const recounted = db.$with('recounted').as(
    db
      .update(journal)
      .set({ intervalsFound: sql`(${readingsIn(sql`${journal}`)})` })
      .where(sql`${journal.id} = any(array${short})`)
      .returning({ id: journal.id }),
  );
  const noted = db.$with('noted').as(
    db
      .insert(intervalFetches)
      .values({ meterId, fetched: sql`tstzmultirange(${fetched})` })
      .onConflictDoUpdate({
        target: intervalFetches.meterId,
        set: {
          fetched: sql`${intervalFetches.fetched} + excluded.fetched`,
          updatedAt: sql`clock_timestamp()`,
        },
      })
      .returning({ removed: removedSince(beganAt).as('removed') }),
  );
  const [answer] = await db
    .with(noted, recounted)
    .select({ removed: sql<boolean>`${noted.removed}` })
    .from(noted);
  return answer?.removed === true;
}

const removedSince = (moment: string | null) =>
  sql<boolean>`coalesce(${intervalFetches.removedAt} > ${moment}::timestamptz, false)`;

/**
 * Until the transaction ends, nobody else can note a read of a meter or replace its readings.
 * Returns whether readings of the meter were removed since the given time.
 */
export async function lockReadings(tx: Executor, meterId: string, since: string): Promise<boolean> {
  const [locked] = await tx
    .insert(intervalFetches)
    .values({ meterId, fetched: '{}' })
    .onConflictDoUpdate({
      target: intervalFetches.meterId,
      set: { fetched: sql`${intervalFetches.fetched}` },
    })
    .returning({ removed: removedSince(since) });
  return locked?.removed === true;
}

/** Notes that readings of a meter are removed: see `noteFetched`. */
export async function noteRemoved(tx: Executor, meterId: string): Promise<void> {
  await tx
    .update(intervalFetches)
    .set({ removedAt: sql`clock_timestamp()` })
    .where(eq(intervalFetches.meterId, meterId));
}

/**
 * Counts the readings that the warehouse has in the range of an event, with those that begin before it and end
 * in it or later.
 */
export const readingsIn = (event: SQL): SQL => sql`

        select
          (
            select count(*)
            from ${intervals} i
            where i.meter_id = ${event}.record_id
              and i.start_at between ${event}.range_start and ${event}.range_end
          ) + (
            select count(*)
            from ${readingsAcross(sql`${event}.record_id`, sql`${event}.range_start`)}
          )
      `;
