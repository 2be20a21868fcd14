import { and, eq, getTableColumns, type SQL, sql } from 'drizzle-orm';
import { columnNames } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { companyChanges } from '../schema/metersync.ts';
import { deletes, removedReadings } from '../schema/reads.ts';
import { intervals, meters } from '../schema/utility.ts';
import { columnsOfReading, lockReadings, makeMonths, readingsAcross } from './ranges.ts';

/** Has the months of a meter's company recomputed, because readings are removed. */
export async function noteRemoval(tx: Executor, meterId: string): Promise<void> {
  await tx.execute(sql`
    insert into ${companyChanges} (company_id)
    select company_id
    from ${meters}
    where id = ${meterId} and company_id is not null`);
}

/** Removes readings, and keeps a copy for an undo. Returns how many were removed. */
export async function removeReadings(tx: Executor, runId: string, which: SQL): Promise<number> {
  const columns = columnNames(columnsOfReading);
  const { rowCount } = await tx.execute(sql`
    with gone as (
      delete from ${intervals}
      where ${which}
      returning ${columns}
    )
    insert into ${removedReadings} (run_id, ${columns})
    select ${runId}::uuid, ${columns}
    from gone`);
  return rowCount ?? 0;
}

const isNoted = (runId: string, state: 'quarantined' | 'applied'): SQL | undefined =>
  and(eq(deletes.runId, runId), eq(deletes.resource, 'intervals'), eq(deletes.state, state));

/**
 * Removes the readings that a run held back. A later read has deleted the notes of ranges that it judged again, so
 * that their readings are spared.
 */
export async function approveReadings(
  tx: Executor,
  runId: string,
): Promise<{ removed: number; spared: number }> {
  const isHeld = isNoted(runId, 'quarantined');
  const [{ noted } = { noted: 0 }] = await tx
    .select({ noted: sql`coalesce(sum(${deletes.readings}), 0)`.mapWith(Number) })
    .from(deletes)
    .where(isHeld);
  await lockMeters(tx, deletes, isHeld);
  const ranges = await tx.select().from(deletes).where(isHeld).for('update');
  let gone = 0;
  for (const { meterId, usageUnits, startsFrom, startsBefore, recordId } of ranges) {
    if (meterId === null) continue;
    await noteRemoval(tx, meterId);
    const isOfRange = sql`meter_id = ${meterId}
      and usage_units = ${usageUnits}
      and start_at >= ${startsFrom}::timestamptz
      and start_at < ${startsBefore}::timestamptz`;
    const of = await removeReadings(tx, runId, isOfRange);
    gone += of;
    if (of > 0)
      await tx
        .update(deletes)
        .set({ state: 'applied', readings: of, decidedAt: sql`clock_timestamp()` })
        .where(and(isHeld, eq(deletes.recordId, recordId)));
  }
  return { removed: gone, spared: Math.max(0, noted - gone) };
}

/** Locks the readings of the meters of noted ranges or removed readings, in the order of their ids. */
async function lockMeters(
  tx: Executor,
  table: typeof deletes | typeof removedReadings,
  which: SQL | undefined,
): Promise<void> {
  const { meterId } = table;
  const found = await tx.selectDistinct({ meterId }).from(table).where(which).orderBy(meterId);
  for (const one of found) if (one.meterId !== null) await lockReadings(tx, one.meterId);
}

/**
 * Restores the readings that a run or a decision on the run removed, except where the meter now has a reading of
 * the same unit for a part of the same time: it would count twice.
 */
export async function reviveReadings(tx: Executor, runId: string): Promise<number> {
  const ofRun = eq(removedReadings.runId, runId);
  const { runId: _, ...reading } = getTableColumns(removedReadings);
  await lockMeters(tx, removedReadings, ofRun);
  // Their partitions may have been dropped.
  const starts = tx.select({ startAt: reading.startAt }).from(removedReadings).where(ofRun);
  await makeMonths(tx, sql`${starts.as('starts')}`);
  await tx.execute(sql`
    insert into ${companyChanges} (company_id)
    select distinct m.company_id
    from ${removedReadings} r
      join ${meters} m on m.id = r.meter_id
    where r.run_id = ${runId}::uuid and m.company_id is not null`);
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
        select from ${intervals}
        where meter_id = b.meter_id
          and usage_units = b.usage_units
          and start_at >= b.start_at
          and start_at < b.start_at + make_interval(secs => b.granularity_seconds)
      )
      and not exists (
        select from ${readingsAcross(sql`b.meter_id`, sql`b.start_at`)}
        where usage_units = b.usage_units
      )`);
  return revived.rowCount ?? 0;
}
