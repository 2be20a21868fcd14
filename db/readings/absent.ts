import { eq, type SQL, sql } from 'drizzle-orm';
import { type DeletesCap, overCap } from '../../contract/deletes-cap.ts';
import { array, elementsAt } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { deletes, intervalReads } from '../schema/reads.ts';
import { intervals, meters } from '../schema/utility.ts';
import { endOf, type ReadRange } from './ranges.ts';
import { noteRemoval, removeReadings } from './removed.ts';

/** The keys of readings that a read lacks, as columns. */
export interface AbsentReadings {
  readonly startAt: readonly string[];
  readonly seconds: readonly number[];
  readonly usageUnits: readonly string[];
  readonly ordinal: readonly number[];
}

/** A proved read of a range of a meter's readings, and the run that asked for it. */
export interface ProvedRead {
  readonly meterId: string;
  readonly range: ReadRange;
  /** The warehouse's clock before the read began. */
  readonly readAt: string;
  readonly runId: string;
  /** How many readings may be removed although no other reading explains their absence; null for any number. */
  readonly cap: DeletesCap | null;
  /** Whether the read showed any reading. */
  readonly listsAny: boolean;
  /** How many readings of it the warehouse did not have. */
  readonly inserted: number;
}

/** The percentage of the cap always allows this many readings: the hours of a day. */
const leastReadings = 24;

/** Maximum number of notes of one read for operators to decide on; the next read notes the rest. */
const notesMax = 1_000;

/** How long before an absent reading another one is looked for that covers its time: a quarter of a year. */
const coverMax = sql.raw(`interval '93 days'`);

/** The keys of absent readings, as a query. */
const absentIn = ({ startAt, seconds, usageUnits, ordinal }: AbsentReadings) => sql`
      select *
      from unnest(
          ${array(startAt, 'timestamptz')},
          ${array(seconds, 'int')},
          ${array(usageUnits, 'text')},
          ${array(ordinal, 'int')}
        ) as t (start_at, granularity_seconds, usage_units, ordinal)`;

/** Whether a reading of a table is not absent. Postgres plans it as a join, also for very many readings. */
const isPresent = (table: string) =>
  sql.raw(`not exists (
          select from absent gone
          where gone.start_at = ${table}.start_at
            and gone.granularity_seconds = ${table}.granularity_seconds
            and gone.usage_units = ${table}.usage_units
            and gone.ordinal = ${table}.ordinal
        )`);

/**
 * Removes the readings that a proved read lacks. An absence is explained if another reading of the same unit covers
 * part of the same time: the service replaced it. Other absences count towards the cap. If they exceed the cap, or
 * the read shows nothing, they are held back as ranges until somebody decides. Readings whose removal somebody
 * rejected or undid stay until a read shows any reading of their range. The caller has locked the meter and written
 * what the read shows.
 */
export async function removeAbsentReadings(
  tx: Executor,
  read: ProvedRead,
  absent: AbsentReadings,
): Promise<{ removed: number; heldBack: number }> {
  const { meterId, runId, cap, listsAny, inserted } = read;
  // A repair does not trust an empty listing.
  if (cap === null && !listsAny) return { removed: 0, heldBack: 0 };
  await clearNotes(tx, read, absent);
  if (absent.startAt.length === 0) return { removed: 0, heldBack: 0 };
  const judged = await judge(tx, read, absent);
  const which = (wanted: (one: (typeof judged)[number]) => boolean): AbsentReadings => {
    const places = judged.flatMap((one, place) => (wanted(one) ? [place] : []));
    const { startAt, seconds, usageUnits, ordinal } = absent;
    return {
      startAt: elementsAt(startAt, places),
      seconds: elementsAt(seconds, places),
      usageUnits: elementsAt(usageUnits, places),
      ordinal: elementsAt(ordinal, places),
    };
  };
  const explained = which((one) => one.explained);
  const others = which((one) => !(one.explained || one.kept));
  const all =
    others.startAt.length === 0 ? 0 : await tx.$count(intervals, eq(intervals.meterId, meterId));
  const tooMany =
    cap !== null &&
    (!listsAny || overCap(cap, others.startAt.length, all - inserted, leastReadings));
  if (others.startAt.length > 0) await noteAbsent(tx, read, absent, others, tooMany);
  const are = (keys: AbsentReadings): SQL => sql`meter_id = ${meterId}
        and start_at >= ${absent.startAt[0]}::timestamptz
        and start_at <= ${absent.startAt.at(-1)}::timestamptz
        and (start_at, granularity_seconds, usage_units, ordinal) in (${absentIn(keys)}
        )`;
  const removed = explained.startAt.length + (tooMany ? 0 : others.startAt.length);
  if (removed > 0) await noteRemoval(tx, meterId);
  if (explained.startAt.length > 0)
    await tx.execute(sql`delete from ${intervals} where ${are(explained)}`);
  if (tooMany) return { removed, heldBack: others.startAt.length };
  if (others.startAt.length > 0) await removeReadings(tx, runId, are(others));
  return { removed, heldBack: 0 };
}

/**
 * Deletes the notes of readings of a range that were held back, because a proved read has judged them again; what a
 * note says about readings before or after the range is noted anew. A decision to keep readings ends if the read
 * shows any of them again, or if the warehouse has none of them any more. What a later read judged is left to it.
 */
async function clearNotes(
  tx: Executor,
  { meterId, range: { start = '-infinity', end = 'infinity' }, readAt }: ProvedRead,
  absent: AbsentReadings,
): Promise<void> {
  const [from, to] = [sql`${start}::timestamptz`, sql`${end}::timestamptz`];
  const isReadLater = (span: SQL) => sql`exists (
              select from ${intervalReads} r
              where r.meter_id = ${meterId}
                and r.began > ${readAt}::timestamptz
                and r.span @> ${span}
            )`;
  await tx.execute(sql`
    with absent as materialized (${absentIn(absent)}
    ), cleared as (
      delete from ${deletes} n
      where meter_id = ${meterId}
        and starts_before > ${from}
        and starts_from < ${to}
        and case state
          when 'quarantined' then not ${isReadLater(sql`tstzrange(n.starts_from, n.starts_before)`)}
          when 'applied' then false
          else exists (
              select from ${intervals} shown
              where meter_id = n.meter_id
                and usage_units = n.usage_units
                and start_at >= greatest(n.starts_from, ${from})
                and start_at < least(n.starts_before, ${to})
                and ${endOf(sql`shown`)} <= ${to}
                and ${isPresent('shown')}
                and not ${isReadLater(sql`tstzrange(shown.start_at, ${endOf(sql`shown`)})`)}
            ) or starts_from >= ${from}
              and starts_before <= ${to}
              and not exists (
                select from ${intervals}
                where meter_id = n.meter_id
                  and usage_units = n.usage_units
                  and start_at >= n.starts_from
                  and start_at < n.starts_before
              )
        end
      returning *
    ), outside as (
      select c.*, rest.*
      from cleared c
        cross join lateral (
          select
            min(start_at) as rest_from,
            max(${endOf(sql`kept`)}) as rest_before,
            count(*) as rest_readings
          from ${intervals} kept
          where meter_id = c.meter_id
            and usage_units = c.usage_units
            and start_at >= c.starts_from
            and start_at < c.starts_before
            and not (start_at >= ${from} and start_at < ${to})
          group by start_at < ${from}
        ) rest
      where state = 'quarantined'
    )
    insert into ${deletes} (
      run_id, company_id, resource, record_id, state, absent_since, meter_id, usage_units,
      starts_from, starts_before, readings
    )
    select
      run_id,
      company_id,
      resource,
      concat_ws(' ', meter_id, usage_units, rest_from, 'to', rest_before),
      state,
      absent_since,
      meter_id,
      usage_units,
      rest_from,
      rest_before,
      rest_readings
    from outside
    on conflict do nothing`);
}

/**
 * Returns for each absent reading whether another reading covers part of its time, and whether it was kept. What the
 * read shows counts, and what the warehouse has within its range: nothing if the read shows nothing.
 */
async function judge(
  tx: Executor,
  { meterId, range: { start = '-infinity', end = 'infinity' }, readAt, listsAny }: ProvedRead,
  absent: AbsentReadings,
): Promise<{ explained: boolean; kept: boolean }[]> {
  const longest = absent.seconds.reduce((most, seconds) => Math.max(most, seconds), 0);
  const last = sql`${absent.startAt.at(-1)}::timestamptz + make_interval(secs => ${longest})`;
  const { rows } = await tx.execute<{ explained: boolean; kept: boolean }>(sql`
    with absent as materialized (
      select *, row_number() over () as place
      from (${absentIn(absent)}
        ) given
    ), covered as (
      select usage_units, range_agg(tstzrange(start_at, ${endOf(sql`present`)})) as spans
      from ${intervals} present
      where ${listsAny}
        and meter_id = ${meterId}
        and start_at > ${absent.startAt[0]}::timestamptz - ${coverMax}
        and start_at < ${last}
        and (
          synced_at = ${readAt}::timestamptz
          or start_at >= ${start}::timestamptz
            and ${endOf(sql`present`)} <= ${end}::timestamptz
        )
        and ${isPresent('present')}
      group by usage_units
    ), kept as (
      select usage_units, range_agg(tstzrange(starts_from, starts_before)) as spans
      from ${deletes}
      where meter_id = ${meterId}
        and state in ('rejected', 'undone')
      group by usage_units
    )
    select
      coalesce(c.spans && a.span, false) as explained,
      coalesce(k.spans && a.span, false) as kept
    from (select *, tstzrange(start_at, ${endOf(sql`absent`)}) as span from absent) a
      left join covered c using (usage_units)
      left join kept k using (usage_units)
    order by place`);
  return rows;
}

/**
 * Notes unexplained absent readings as ranges: consecutive absent readings of one unit, without another reading of
 * the unit between them or at their time.
 */
async function noteAbsent(
  tx: Executor,
  { meterId, readAt, runId }: ProvedRead,
  absent: AbsentReadings,
  unexplained: AbsentReadings,
  tooMany: boolean,
): Promise<void> {
  await tx.execute(sql`
    with absent as materialized (${absentIn(absent)}
    ), unexplained as materialized (${absentIn(unexplained)}
    ), marks as (
      select usage_units, start_at, ${endOf(sql`unexplained`)} as end_at, 0 as present
      from unexplained
      union all
      select usage_units, start_at, null, 1
      from ${intervals} present
      where meter_id = ${meterId}
        and start_at >= ${unexplained.startAt[0]}::timestamptz
        and start_at <= ${unexplained.startAt.at(-1)}::timestamptz
        and ${isPresent('present')}
    ), islands as (
      select *, sum(present) over by_time as island
      from marks
      window by_time as (partition by usage_units order by start_at, present desc)
    ), ranges as (
      select
        usage_units,
        min(start_at) as starts_from,
        max(end_at) as starts_before,
        count(*) as readings
      from islands
      where present = 0
      group by usage_units, island
      order by starts_from
      limit ${notesMax}
    )
    insert into ${deletes} (
      run_id, company_id, resource, record_id, state, absent_since, meter_id, usage_units,
      starts_from, starts_before, readings
    )
    select
      ${runId}::uuid,
      (select company_id from ${meters} where id = ${meterId}),
      'intervals',
      concat_ws(' ', ${meterId}::text, usage_units, starts_from, 'to', starts_before),
      ${tooMany ? 'quarantined' : 'applied'},
      ${readAt}::timestamptz,
      ${meterId},
      usage_units,
      starts_from,
      starts_before,
      readings
    from ranges
    on conflict (run_id, resource, record_id) do update set
      company_id = excluded.company_id,
      state = excluded.state,
      reason = excluded.reason,
      absent_since = excluded.absent_since,
      readings = excluded.readings`);
}
