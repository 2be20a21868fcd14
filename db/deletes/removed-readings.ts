import { and, eq, getTableColumns, isNotNull, type SQL, sql } from 'drizzle-orm';
import { columnNames } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { readingsAcross } from '../records/interval-key.ts';
import { lockReadings, noteRemoved } from '../records/interval-ledger.ts';
import { makeMonths } from '../records/interval-months.ts';
import { companyChanges, deletes, removedReadings } from '../schema/metersync.ts';
import { intervals, meters } from '../schema/utility.ts';
import { changeOf } from './tombstone.ts';

/** Tells reads under way that readings are removed, and has the company's months recomputed. */
export async function noteRemoval(tx: Executor, meterId: string): Promise<void> {
  await noteRemoved(tx, meterId);
  const { companyId } = meters;
  await tx.insert(companyChanges).select(
    tx
      .select(changeOf(companyId))
      .from(meters)
      .where(and(eq(meters.id, meterId), isNotNull(companyId))),
  );
}

/** Removes readings, and keeps a copy for an undo. Returns how many were removed. */
export async function removeReadings(tx: Executor, runId: string, which: SQL): Promise<number> {
  const reading = getTableColumns(intervals);
  const gone = tx.$with('gone').as(
    tx
      .delete(intervals)
      .where(which)
      .returning({ runId: sql<string>`${runId}::uuid`.as('run_id'), ...reading }),
  );
  const kept = await tx.with(gone).insert(removedReadings).select(tx.select().from(gone));
  return kept.rowCount ?? 0;
}

const isNoted = (runId: string, state: 'quarantined' | 'applied'): SQL | undefined =>
  and(eq(deletes.runId, runId), eq(deletes.resource, 'intervals'), eq(deletes.state, state));

/** Removes readings that a run held back, unless they were read since and will be judged again. */
export async function approveReadings(
  tx: Executor,
  runId: string,
): Promise<{ removed: number; spared: number }> {
  const ranges = await tx.select().from(deletes).where(isNoted(runId, 'quarantined')).for('update');
  let gone = 0;
  for (const { meterId, usageUnits, startsFrom, startsBefore, absentSince, recordId } of ranges) {
    if (meterId === null) continue;
    await lockReadings(tx, meterId, absentSince);
    await noteRemoval(tx, meterId);
    const isOfRange = sql`${intervals.meterId} = ${meterId}
      and ${intervals.usageUnits} = ${usageUnits}
      and ${intervals.startAt} >= ${startsFrom}::timestamptz
      and ${intervals.startAt} < ${startsBefore}::timestamptz
      and ${intervals.syncedAt} < ${absentSince}::timestamptz`;
    const of = await removeReadings(tx, runId, isOfRange);
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

/**
 * Restores the readings that a run or a decision on the run removed, except where the meter now has a reading of
 * the same unit for a part of the same time: it would count twice.
 */
export async function reviveReadings(tx: Executor, runId: string): Promise<number> {
  const ofRun = eq(removedReadings.runId, runId);
  const { runId: _, ...reading } = getTableColumns(removedReadings);
  // Their partitions may have been dropped.
  const starts = tx.select({ startAt: reading.startAt }).from(removedReadings).where(ofRun);
  await makeMonths(tx, sql`${starts.as('starts')}`);
  const changed = tx
    .selectDistinct({ companyId: meters.companyId })
    .from(removedReadings)
    .innerJoin(meters, eq(meters.id, reading.meterId))
    .where(and(ofRun, isNotNull(meters.companyId)))
    .as('changed');
  await tx.insert(companyChanges).select(tx.select(changeOf(changed.companyId)).from(changed));
  const revived = await tx.execute(sql`
    with back as (
      delete from ${removedReadings}
      where run_id = ${runId}::uuid
      returning ${columnNames(Object.values(reading))}
    )
    insert into ${intervals} (${columnNames(Object.values(reading))})
    select b.*
    from back b
    where not exists (
        select
        from ${intervals}
        where meter_id = b.meter_id
          and usage_units = b.usage_units
          and start_at >= b.start_at
          and start_at < b.start_at + make_interval(secs => b.granularity_seconds)
      )
      and not exists (
        select
        from ${readingsAcross(sql`b.meter_id`, sql`b.start_at`)}
        where usage_units = b.usage_units
      )`);
  return revived.rowCount ?? 0;
}
