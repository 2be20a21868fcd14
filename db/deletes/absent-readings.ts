import { and, count, eq, inArray, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { noteRemoved } from '../catch-up/interval-ledger.ts';
import { columnNames } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { endOf, liesWithin, type ReadRange } from '../records/interval-key.ts';
import { readingsOfPass } from '../records/listed-readings.ts';
import { companyChanges, deletes, removedReadings } from '../schema/metersync.ts';
import { intervals, meters } from '../schema/utility.ts';
import { type DeletesCap, overCap } from './absent.ts';
import { note } from './tombstone.ts';

/** A proved pass over the readings of a range, and the run that asked for it. */
export interface ProvedPass {
  readonly meterId: string;
  readonly range: ReadRange;
  /** The warehouse's clock before the pass began. */
  readonly readAt: string;
  /** Its number among the passes: see `makeListedReadings`. */
  readonly pass: number;
  readonly runId: string;
}

/** Fewer readings than this are always below the cap: a day of hours. */
const leastReadings = 24;

/** Notes of one pass: an operator decides on them, and the next pass notes what is left. */
const notesMax = 1_000;

/** The readings that a pass lacks, until the transaction ends. */
const absentReadings = sql.identifier('absent_readings');
/** A reading of the warehouse. */
export const held = alias(intervals, 'held');

/** The columns of a removed reading. */
export const removed = columnNames([
  removedReadings.meterId,
  removedReadings.startAt,
  removedReadings.granularitySeconds,
  removedReadings.usageUnits,
  removedReadings.ordinal,
  removedReadings.usage,
  removedReadings.quality,
  removedReadings.updated,
  removedReadings.syncedAt,
  removedReadings.unreadable,
]);

/**
 * Removes the readings of a range that a proved pass lacks, except readings that a later read brought. An
 * absence is explained if a listed reading of the same unit covers part of the same time, because the service
 * then replaced it. Other absences count towards the cap. If there are more than the cap, or the pass lists
 * nothing at all, they are held back as ranges until somebody decides. Readings whose removal somebody
 * rejected or undid stay until a pass lists any reading of their range.
 * @param cap null removes all
 */
export async function removeAbsentReadings(
  tx: Executor,
  proved: ProvedPass,
  cap: DeletesCap | null,
): Promise<{ removed: number; heldBack: number }> {
  const { meterId, range } = proved;
  await endDecisions(tx, proved);
  await findAbsent(tx, proved);
  const found = await countAbsent(tx, proved);
  const live = found.unexplained === 0 ? 0 : await countReadings(tx, meterId);
  const tooMany =
    cap !== null && (found.listed === 0 || overCap(cap, found.unexplained, live, leastReadings));
  await clearHeldBack(tx, meterId, range);
  // A repair takes no empty listing for the truth.
  const isEmpty = cap === null && found.listed === 0;
  if (found.absent === 0 || isEmpty) return { removed: 0, heldBack: 0 };
  if (found.unexplained > 0) await noteAbsent(tx, proved, tooMany);
  await noteRemoved(tx, meterId);
  const gone = await removeThose(tx, proved, sql`is_explained or not (${tooMany} or is_kept)`);
  return { removed: gone, heldBack: tooMany ? found.unexplained : 0 };
}

/** Ends decisions to keep readings of a range of which the pass lists any reading of the unit. */
async function endDecisions(tx: Executor, { meterId, pass }: ProvedPass): Promise<void> {
  await tx.execute(sql`
    delete from ${deletes} ${note}
    where ${note.meterId} = ${meterId}
      and ${note.state} in ('rejected', 'undone')
      and exists (
        select
        from (${readingsOfPass(pass)}
        ) listed
        where listed.usage_units = ${note.usageUnits}
          and listed.start_at >= ${note.startsFrom}
          and listed.start_at < ${note.startsBefore}
      )`);
}

async function countReadings(tx: Executor, meterId: string): Promise<number> {
  const [found] = await tx
    .select({ readings: count() })
    .from(intervals)
    .where(eq(intervals.meterId, meterId));
  return found?.readings ?? 0;
}

/**
 * Clears which readings of a range were held back: a proved pass has judged them again. A note that
 * reaches beyond the range goes as well. The next backfill notes what is still absent of it.
 */
export async function clearHeldBack(
  db: Executor,
  meterId: string,
  { start, end }: ReadRange,
): Promise<void> {
  const isOfRange = and(
    eq(deletes.meterId, meterId),
    eq(deletes.state, 'quarantined'),
    start === undefined ? undefined : sql`${deletes.startsBefore} > ${start}::timestamptz`,
    end === undefined ? undefined : sql`${deletes.startsFrom} < ${end}::timestamptz`,
  );
  await hot(db, 'clearHeldBack').execute(db.delete(deletes).where(isOfRange));
}

/** Ends decisions to keep readings within a range for which the service lists exactly what the warehouse has. */
export async function endDecisionsWithin(
  db: Executor,
  meterId: string,
  { start, end }: ReadRange,
): Promise<void> {
  const isWithin = and(
    eq(deletes.meterId, meterId),
    inArray(deletes.state, ['rejected', 'undone']),
    start === undefined ? undefined : sql`${deletes.startsFrom} >= ${start}::timestamptz`,
    end === undefined ? undefined : sql`${deletes.startsBefore} <= ${end}::timestamptz`,
  );
  await hot(db, 'endDecisions').execute(db.delete(deletes).where(isWithin));
}

async function findAbsent(
  tx: Executor,
  { meterId, range, readAt, pass }: ProvedPass,
): Promise<void> {
  await tx.execute(sql`
    create temp table ${absentReadings} (
      start_at timestamptz,
      granularity_seconds int,
      usage_units text,
      ordinal int,
      end_at timestamptz,
      is_explained boolean,
      is_kept boolean
    ) on commit drop`);
  await tx.execute(sql`
    with listed as materialized (${readingsOfPass(pass)}
    ), covered as materialized (
      select
        usage_units,
        range_agg(tstzrange(start_at, ${endOf(sql`listed`)})) as spans
      from listed
      group by usage_units
    ), kept as materialized (
      select
        ${note.usageUnits} as usage_units,
        range_agg(tstzrange(${note.startsFrom}, ${note.startsBefore})) as spans
      from ${deletes} ${note}
      where ${note.meterId} = ${meterId}
        and ${note.state} in ('rejected', 'undone')
      group by ${note.usageUnits}
    )
    insert into ${absentReadings}
    select
      ${held.startAt},
      ${held.granularitySeconds},
      ${held.usageUnits},
      ${held.ordinal},
      until,
      coalesce(covered.spans && tstzrange(${held.startAt}, until), false),
      coalesce(kept.spans && tstzrange(${held.startAt}, until), false)
    from ${intervals} ${held}
      cross join lateral (select ${endOf(held)} as until) ends
      left join covered on covered.usage_units = ${held.usageUnits}
      left join kept on kept.usage_units = ${held.usageUnits}
      left join listed l
        on l.start_at = ${held.startAt}
          and l.granularity_seconds = ${held.granularitySeconds}
          and l.usage_units = ${held.usageUnits}
          and l.ordinal = ${held.ordinal}
    where ${held.meterId} = ${meterId}
      and ${held.syncedAt} < ${readAt}::timestamptz
      and ${liesWithin(range, held)}
      and l.start_at is null`);
}

async function countAbsent(tx: Executor, { pass }: ProvedPass) {
  const { rows } = await tx.execute<Record<'absent' | 'unexplained' | 'listed', number>>(sql`
    select
      count(*)::int as absent,
      (count(*) filter (where not is_explained and not is_kept))::int as unexplained,
      (
        select count(*)::int
        from (${readingsOfPass(pass)}
        limit 1) listed
      ) as listed
    from ${absentReadings}`);
  return rows[0] ?? { absent: 0, unexplained: 0, listed: 0 };
}

/**
 * Notes the absent readings that nothing explains, as ranges of readings that follow one another without a
 * listed reading of their unit between them. No listed reading of the unit shares time with such a range.
 */
async function noteAbsent(
  tx: Executor,
  { meterId, readAt, pass, runId }: ProvedPass,
  tooMany: boolean,
): Promise<void> {
  await tx.execute(sql`
    with listed as materialized (${readingsOfPass(pass)}
    ), marks as (
      select usage_units, start_at, end_at, 0 as listed
      from ${absentReadings}
      where not is_explained
        and not is_kept
      union all
      select usage_units, start_at, null, 1
      from listed
    ), islands as (
      select
        *,
        sum(listed) over (partition by usage_units order by start_at, listed desc) as island
      from marks
    ), ranges as (
      select
        case when ${tooMany} then 'quarantined' else 'applied' end as state,
        usage_units,
        min(start_at) as starts_from,
        max(end_at) as starts_before,
        count(*) as readings
      from islands
      where listed = 0
      group by usage_units, island
      order by min(start_at)
      limit ${notesMax}
    )
    insert into ${deletes} (${columnNames(notedColumns)})
    select
      ${runId}::uuid,
      (select ${meters.companyId} from ${meters} where ${meters.id} = ${meterId}),
      'intervals',
      concat_ws(' ', ${meterId}::text, usage_units, starts_from, 'to', starts_before),
      state,
      ${readAt}::timestamptz,
      ${meterId},
      usage_units,
      starts_from,
      starts_before,
      readings
    from ranges
    on conflict (run_id, resource, record_id) do update set
      state = excluded.state,
      absent_since = excluded.absent_since,
      readings = excluded.readings`);
}

const notedColumns = [
  deletes.runId,
  deletes.companyId,
  deletes.resource,
  deletes.recordId,
  deletes.state,
  deletes.absentSince,
  deletes.meterId,
  deletes.usageUnits,
  deletes.startsFrom,
  deletes.startsBefore,
  deletes.readings,
];

/** Removes absent readings that meet a condition. */
const removeThose = async (tx: Executor, proved: ProvedPass, which: SQL): Promise<number> =>
  await removeReadings(
    tx,
    proved,
    sql`
      delete from ${intervals} ${held}
      using ${absentReadings} a
      where ${held.meterId} = ${proved.meterId}
        and ${held.startAt} = a.start_at
        and ${held.granularitySeconds} = a.granularity_seconds
        and ${held.usageUnits} = a.usage_units
        and ${held.ordinal} = a.ordinal
        and ${held.syncedAt} < ${proved.readAt}::timestamptz
        and (${which})
      returning ${held}.*, a.is_explained`,
  );

/** Removes readings of a meter by a `delete` that returns them; keeps the unexplained ones for an undo. */
export async function removeReadings(
  tx: Executor,
  { meterId, runId }: Pick<ProvedPass, 'meterId' | 'runId'>,
  deletion: SQL,
): Promise<number> {
  const { rows } = await tx.execute<{ rows: number }>(sql`
    with gone as (${deletion}
    ), kept as (
      insert into ${removedReadings} (run_id, ${removed})
      select ${runId}::uuid, ${removed}
      from gone
      where not is_explained
    ), noted as (
      insert into ${companyChanges} (company_id)
      select ${meters.companyId}
      from ${meters}
      where ${meters.id} = ${meterId}
        and ${meters.companyId} is not null
        and exists (select from gone)
    )
    select count(*)::int as rows
    from gone`);
  return rows[0]?.rows ?? 0;
}
