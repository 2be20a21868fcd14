import { and, eq, type SQL, sql } from 'drizzle-orm';
import { lockReadings, noteRemoved } from '../catch-up/interval-ledger.ts';
import type { Executor } from '../connection/connect.ts';
import { companyChanges, deletes, removedReadings } from '../schema/metersync.ts';
import { intervals, meters } from '../schema/utility.ts';
import { held, removed, removeReadings } from './absent-readings.ts';

const isNoted = (runId: string, state: 'quarantined' | 'applied'): SQL | undefined =>
  and(eq(deletes.runId, runId), eq(deletes.resource, 'intervals'), eq(deletes.state, state));

/**
 * Removes the readings that a run held back, except readings that were read since: the next read judges them
 * again.
 */
export async function approveReadings(
  tx: Executor,
  runId: string,
): Promise<{ removed: number; spared: number }> {
  const ranges = await tx.select().from(deletes).where(isNoted(runId, 'quarantined')).for('update');
  let gone = 0;
  for (const { meterId, usageUnits, startsFrom, startsBefore, absentSince, recordId } of ranges) {
    if (meterId === null) continue;
    await lockReadings(tx, meterId, absentSince);
    await noteRemoved(tx, meterId);
    const of = await removeReadings(
      tx,
      { meterId, runId },
      sql`
      delete from ${intervals} ${held}
      where ${held.meterId} = ${meterId}
        and ${held.usageUnits} = ${usageUnits}
        and ${held.startAt} >= ${startsFrom}::timestamptz
        and ${held.startAt} < ${startsBefore}::timestamptz
        and ${held.syncedAt} < ${absentSince}::timestamptz
      returning ${held}.*, false as is_explained`,
    );
    gone += of;
    if (of > 0)
      await tx
        .update(deletes)
        .set({ state: 'applied', readings: of, decidedAt: sql`clock_timestamp()` })
        .where(and(isNoted(runId, 'quarantined'), eq(deletes.recordId, recordId)));
  }
  const noted = ranges.reduce((sum, { readings }) => sum + (readings ?? 0), 0);
  return { removed: gone, spared: Math.max(0, noted - gone) };
}

/** Brings back the readings that a run, or a decision on it, removed. */
export async function reviveReadings(tx: Executor, runId: string): Promise<number> {
  const ofRun = eq(removedReadings.runId, runId);
  // Their partitions may have been dropped. A statement does not see partitions that it makes.
  await tx.execute(sql`
    select metersync.ensure_interval_month(month)
    from (
      select distinct date_trunc('month', ${removedReadings.startAt}, 'UTC') as month
      from ${removedReadings}
      where ${ofRun}
      order by month
    ) months`);
  const { rows } = await tx.execute<{ rows: number }>(sql`
    with back as (
      delete from ${removedReadings}
      where ${ofRun}
      returning ${removed}
    ), noted as (
      insert into ${companyChanges} (company_id)
      select distinct ${meters.companyId}
      from back
        join ${meters} on ${meters.id} = back.meter_id
      where ${meters.companyId} is not null
    ), revived as (
      insert into ${intervals} (${removed})
      select ${removed}
      from back
      on conflict do nothing
      returning 1
    )
    select count(*)::int as rows
    from revived`);
  return rows[0]?.rows ?? 0;
}
