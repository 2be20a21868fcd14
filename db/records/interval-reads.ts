import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { intervalFetches, intervalReads, journal } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import { type ReadRange, readingsAcross } from './interval-key.ts';

/**
 * How long the reads of a meter are remembered. A read that took longer is thrown away, because nothing tells what
 * later reads did not show.
 */
const remembered = sql.raw(`interval '1 day'`);

/**
 * Until the transaction ends, nobody else changes the readings of a meter. Returns false if a read that began at
 * `readAt` is too old to be written.
 */
export async function lockReadings(
  tx: Executor,
  meterId: string,
  readAt: string | null = null,
): Promise<boolean> {
  const [locked] = await tx
    .insert(intervalFetches)
    .values({ meterId, fetched: '{}' })
    .onConflictDoUpdate({
      target: intervalFetches.meterId,
      set: { fetched: sql`${intervalFetches.fetched}` },
    })
    .returning({
      expired: sql<boolean>`coalesce(clock_timestamp() - ${readAt}::timestamptz > ${remembered}, false)`,
    });
  return locked?.expired !== true;
}

/**
 * Notes that a range of a meter's readings was read to its proved end, so that no read that began earlier brings
 * back what this one did not show. Recounts events with too few readings.
 */
export async function noteRead(
  tx: Executor,
  { meterId, range }: { readonly meterId: string; readonly range: ReadRange },
  readAt: string,
): Promise<void> {
  const [start, end] = [range.start ?? null, range.end ?? null];
  const fetched = sql`tstzrange(${start}::timestamptz, ${end}::timestamptz, '[]')`;
  const isShort = sql`record_id = ${meterId}
      and lacking is not null
      and tstzrange(range_start, range_end, '[]') <@ ${fetched}`;
  const { rows } = await tx.execute<{ short: boolean }>(sql`
    with forgotten as (
      delete from ${intervalReads}
      where meter_id = ${meterId}
        and began < clock_timestamp() - ${remembered}
        and span <> tstzrange(${start}::timestamptz, ${end}::timestamptz)
    ), remembered as (
      insert into ${intervalReads} as r (meter_id, span, began)
      select ${meterId}, tstzrange(${start}::timestamptz, ${end}::timestamptz), ${readAt}::timestamptz
      on conflict (meter_id, span) do update set
        began = greatest(r.began, excluded.began)
    )
    update ${intervalFetches} set
      fetched = fetched + tstzmultirange(${fetched}),
      updated_at = clock_timestamp()
    where meter_id = ${meterId}
    returning exists (select from ${journal} where ${isShort}) as short`);
  if (rows[0]?.short !== true) return;
  await tx.execute(sql`
    update ${journal} set
      intervals_found = (${readingsIn(sql`${journal}`)})
    where id = any(array(select id from ${journal} where ${isShort} for no key update skip locked))`);
}

/** Deletes reads that are not remembered any more, of meters that nobody read since. Returns how many. */
export async function forgetReads(db: Executor, limit: number): Promise<number> {
  const { rowCount } = await db.execute(sql`
    delete from ${intervalReads}
    where (meter_id, span) in (
        select meter_id, span
        from ${intervalReads}
        where began < clock_timestamp() - ${remembered}
        limit ${limit}
      )`);
  return rowCount ?? 0;
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
