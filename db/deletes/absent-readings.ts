import { and, count, eq, inArray, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { alias, boolean, integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { Executor } from '../connection/connect.ts';
import { createTempTable } from '../connection/temp-table.ts';
import { endOf, liesWithin, type ReadRange } from '../records/interval-key.ts';
import { readingsListed } from '../records/listed-readings.ts';
import { time } from '../schema/columns.ts';
import { deletes } from '../schema/metersync.ts';
import { intervals, meters } from '../schema/utility.ts';
import { type DeletesCap, notedAgain, noteOf, overCap } from './absent.ts';
import { noteRemoval, removeReadings } from './removed-readings.ts';
import { note } from './tombstone.ts';

/** A proved pass over the readings of a range, which `makeListedReadings` has, and the run that asked for it. */
export interface ProvedPass {
  readonly meterId: string;
  readonly range: ReadRange;
  /** The warehouse's clock before the pass began. */
  readonly readAt: string;
  readonly runId: string;
}

/** The percentage of the cap always allows this many readings: the hours of a day. */
const leastReadings = 24;

/** Maximum number of notes of one pass for operators to decide on; the next pass notes the rest. */
const notesMax = 1_000;

/** The temporary table of the readings that a pass lacks. It exists until the transaction ends. */
const absentReadings = pgTable('absent_readings', {
  startAt: time('start_at'),
  granularitySeconds: integer('granularity_seconds'),
  usageUnits: text('usage_units'),
  ordinal: integer('ordinal'),
  isExplained: boolean('is_explained'),
  isKept: boolean('is_kept'),
});
const { startAt, granularitySeconds, usageUnits, ordinal, isExplained, isKept } = absentReadings;
const isUnexplained = sql`not (${isExplained} or ${isKept})`;

const held = alias(intervals, 'held');

/**
 * Removes the readings of a range that a proved pass lacks, except readings that a later read
 * wrote. An absence is explained if a listed reading of the same unit covers part of the same time:
 * the service replaced it. Other absences count towards the cap. If they exceed the cap, or the
 * pass lists nothing, they are held back as ranges until somebody decides. Readings whose removal
 * somebody rejected or undid stay until a pass lists any reading of their range.
 * @param cap null removes all absent readings, unless the pass lists nothing
 */
export async function removeAbsentReadings(
  tx: Executor,
  proved: ProvedPass,
  cap: DeletesCap | null,
): Promise<{ removed: number; heldBack: number }> {
  const { meterId, range } = proved;
  await clearNotes(tx, meterId, range, showsAny);
  await findAbsent(tx, proved);
  const { absent, unexplained, listsAny } = await countAbsent(tx);
  const isOfMeter = eq(intervals.meterId, meterId);
  const live = unexplained === 0 ? 0 : await tx.$count(intervals, isOfMeter);
  const tooMany = cap !== null && (!listsAny || overCap(cap, unexplained, live, leastReadings));
  // A repair does not trust an empty listing.
  const isEmpty = cap === null && !listsAny;
  if (absent === 0 || isEmpty) return { removed: 0, heldBack: 0 };
  if (unexplained > 0) await noteAbsent(tx, proved, tooMany);
  await noteRemoval(tx, meterId);
  const explained = await tx.delete(intervals).where(isAmongAbsent(tx, proved, isExplained));
  const removed = explained.rowCount ?? 0;
  if (tooMany) return { removed, heldBack: unexplained };
  const others = await removeReadings(tx, proved.runId, isAmongAbsent(tx, proved, isUnexplained));
  return { removed: removed + others, heldBack: 0 };
}

/** Whether a pass lists any reading of the unit and time that a note is about. */
const showsAny: SQL = sql`exists (
        select
        from (${readingsListed}
        ) listed
        where listed.usage_units = ${deletes.usageUnits}
          and listed.start_at >= ${deletes.startsFrom}
          and listed.start_at < ${deletes.startsBefore}
      )`;

/**
 * Deletes the notes of readings of a range that were held back, because a proved pass has judged
 * them again; for a note that reaches beyond the range, the next backfill notes the rest. A
 * decision to keep readings ends if the service shows them again. By default this is assumed for
 * all decisions within the range: there the service lists exactly what the warehouse has.
 */
export async function clearNotes(
  db: Executor,
  meterId: string,
  { start = '-infinity', end = 'infinity' }: ReadRange,
  isShown = sql`${deletes.startsFrom} >= ${start}::timestamptz
      and ${deletes.startsBefore} <= ${end}::timestamptz`,
): Promise<void> {
  const isOfRange = sql`${deletes.startsBefore} > ${start}::timestamptz
      and ${deletes.startsFrom} < ${end}::timestamptz`;
  await db.delete(deletes).where(
    and(
      eq(deletes.meterId, meterId),
      sql`case ${deletes.state}
        when 'quarantined' then ${isOfRange}
        when 'applied' then false
        else ${isShown}
      end`,
    ),
  );
}

async function findAbsent(tx: Executor, { meterId, range, readAt }: ProvedPass): Promise<void> {
  await createTempTable(tx, absentReadings);
  const listed = tx.$with('listed', {}).as(readingsListed);
  const covered = tx.$with('covered').as(
    tx
      .select({
        units: sql`usage_units`.as('covered_units'),
        spans: sql`range_agg(tstzrange(start_at, ${endOf(sql`listed`)}))`.as('covered_spans'),
      })
      .from(sql`listed`)
      .groupBy(sql`usage_units`),
  );
  const kept = tx.$with('kept').as(
    tx
      .select({
        units: note.usageUnits,
        spans: sql`range_agg(tstzrange(${note.startsFrom}, ${note.startsBefore}))`.as('kept_spans'),
      })
      .from(note)
      .where(and(eq(note.meterId, meterId), inArray(note.state, ['rejected', 'undone'])))
      .groupBy(note.usageUnits),
  );
  const isWithin = (spans: SQL.Aliased) =>
    sql`coalesce(${spans} && tstzrange(${held.startAt}, ${endOf(held)}), false)`;
  await tx
    .with(listed, covered, kept)
    .insert(absentReadings)
    .select(
      tx
        .select({
          startAt: held.startAt,
          granularitySeconds: held.granularitySeconds,
          usageUnits: held.usageUnits,
          ordinal: held.ordinal,
          isExplained: isWithin(covered.spans).as('is_explained'),
          isKept: isWithin(kept.spans).as('is_kept'),
        })
        .from(held)
        .leftJoin(covered, eq(covered.units, held.usageUnits))
        .leftJoin(kept, eq(kept.units, held.usageUnits))
        .leftJoin(
          sql`listed l`,
          sql`l.start_at = ${held.startAt}
          and l.granularity_seconds = ${held.granularitySeconds}
          and l.usage_units = ${held.usageUnits}
          and l.ordinal = ${held.ordinal}`,
        )
        .where(
          and(
            eq(held.meterId, meterId),
            sql`${held.syncedAt} < ${readAt}::timestamptz`,
            liesWithin(range, held),
            sql`l.start_at is null`,
          ),
        ),
    );
}

async function countAbsent(tx: Executor) {
  const [found] = await tx
    .select({
      absent: count(),
      unexplained: sql`count(*) filter (where ${isUnexplained})`.mapWith(Number),
      listsAny: sql<boolean>`exists (${readingsListed})`,
    })
    .from(absentReadings);
  return found ?? { absent: 0, unexplained: 0, listsAny: false };
}

/**
 * Notes unexplained absent readings as ranges: consecutive absent readings of one unit, without a
 * listed reading of the unit between them or at their time.
 */
async function noteAbsent(
  tx: Executor,
  { meterId, readAt, runId }: ProvedPass,
  tooMany: boolean,
): Promise<void> {
  const marks = tx
    .select({
      usageUnits,
      startAt,
      endAt: endOf(absentReadings).as('end_at'),
      listed: sql`0`.as('listed'),
    })
    .from(absentReadings)
    .where(isUnexplained)
    .unionAll(
      tx
        .select({
          usageUnits: sql<string>`usage_units`,
          startAt: sql<string>`start_at`,
          endAt: sql`null`,
          listed: sql`1`,
        })
        .from(sql`(${readingsListed}) shown`),
    )
    .as('marks');
  const islands = tx
    .select({
      usageUnits: marks.usageUnits,
      startAt: marks.startAt,
      endAt: marks.endAt,
      listed: marks.listed,
      island: sql`sum(listed) over (partition by usage_units order by start_at, listed desc)`.as(
        'island',
      ),
    })
    .from(marks)
    .as('islands');
  const ranges = tx
    .select({
      usageUnits: islands.usageUnits,
      startsFrom: sql`min(start_at)`.as('starts_from'),
      startsBefore: sql`max(end_at)`.as('starts_before'),
      readings: count().as('readings'),
    })
    .from(islands)
    .where(sql`listed = 0`)
    .groupBy(islands.usageUnits, islands.island)
    .orderBy(sql`starts_from`)
    .limit(notesMax)
    .as('ranges');
  const noted = noteOf({
    runId: sql`${runId}::uuid`,
    companyId: sql`(select ${meters.companyId} from ${meters} where ${meters.id} = ${meterId})`,
    resource: sql`'intervals'`,
    recordId: sql`concat_ws(' ', ${meterId}::text, usage_units, starts_from, 'to', starts_before)`,
    state: tooMany ? sql`'quarantined'` : sql`'applied'`,
    absentSince: sql`${readAt}::timestamptz`,
    meterId: sql`${meterId}::text`,
    usageUnits: sql`usage_units`,
    startsFrom: sql`starts_from`,
    startsBefore: sql`starts_before`,
    readings: sql`readings`,
  });
  await tx.insert(deletes).select(tx.select(noted).from(ranges)).onConflictDoUpdate(notedAgain);
}

/** Whether a reading of the meter is absent and meets a condition, and no later read wrote it. */
const isAmongAbsent = (tx: Executor, { meterId, readAt }: ProvedPass, which: SQLWrapper): SQL => {
  const of = intervals;
  const keys = tx
    .select({ startAt, granularitySeconds, usageUnits, ordinal })
    .from(absentReadings)
    .where(sql`${which}`);
  return sql`${of.meterId} = ${meterId}
    and ${of.syncedAt} < ${readAt}::timestamptz
    and (${of.startAt}, ${of.granularitySeconds}, ${of.usageUnits}, ${of.ordinal}) in ${keys}`;
};
