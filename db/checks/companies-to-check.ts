import { and, eq, isNull, sql } from 'drizzle-orm';
import type { CheckName } from '../../contract/check-names.ts';
import type { CheckKind } from '../../contract/names.ts';
import { countChosen, isChosen } from '../backfill/run-companies.ts';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { companyChanges, dataChecks, journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import { companies, meters } from '../schema/utility.ts';
import type { CompanyToCheck } from './check-data.ts';

/** Kinds of checks whose result also depends on the date: for example, they find what is late. */
const kindsOfADay: readonly CheckKind[] = ['bills', 'connections'];

/**
 * Deletes the notes of checks whose result may differ now, because the company's data, the date or
 * the list of disabled checks changed. Extends all other notes up to now.
 */
export async function deleteOutdatedChecks(db: Executor, off: readonly CheckName[]): Promise<void> {
  // A statement of its own, so that the next statement sees everything written before.
  const { rows } = await db.execute<{ since: string | null; until: string }>(sql`
    select min(seen_until) as since, metersync.changes_seen_until() as until from ${dataChecks}`);
  const { since = null, until } = rows[0] ?? {};
  if (since === null) return;
  // With only one bound, the planner would expect a third of all rows, whatever the bound is.
  await db.execute(sql`
    with change as (
      -- The index has the time of receipt. The next step finds events that were settled more than a
      -- day after it.
      select
        company_id,
        case kind when 'interval' then record_id end as meter_id,
        coalesce(settled_at, recorded_at) as at
      from ${journal}
      where received_at between ${since}::timestamptz - interval '1 day' and 'infinity'
        and outcome in ('applied', 'superseded')
        and coalesce(settled_at, recorded_at) >= ${since}
      union all
      select company_id, case kind when 'interval' then record_id end, aside_at
      from ${journal}
      where aside in ('superseded', 'late') and aside_at between ${since} and 'infinity'
      union all
      -- A company whose months are computed gets a new time, so it counts again.
      select company_id, null, changed_at
      from ${companyChanges}
      where changed_at between ${since} and 'infinity'
    ), changed as (
      select
        coalesce(change.company_id, meter.company_id) as company_id,
        max(change.at) as at,
        max(change.at) filter (where change.meter_id is null) as at_of_records
      from change
        -- Events of readings name their meter.
        left join ${meters} meter on meter.id = change.meter_id
      group by 1
    ), judged as (
      select
        checked.company_id,
        checked.run_with,
        coalesce(
          checked.checks_off <> ${array(off, 'text')}
            or checked.today <> current_date and ${isAmong(sql`checked.run_with`, kindsOfADay)}
            -- Only one kind of checks reads readings, which change most often.
            or case checked.run_with when 'intervals' then changed.at else changed.at_of_records end
              >= checked.seen_until
            or exists (
              select
              from ${runs} part
              where part.company_id = checked.company_id
                and part.resource is not null
                and (part.resource <> 'intervals' or checked.run_with = 'intervals')
                and part.finished_at >= checked.seen_until
                and part.rows_inserted + part.rows_changed + part.rows_tombstoned > 0
            ),
          false
        ) as is_stale
      from ${dataChecks} checked
        left join changed on changed.company_id = checked.company_id
    ), outdated as (
      delete from ${dataChecks}
      where (company_id, run_with) in (select company_id, run_with from judged where is_stale)
    )
    update ${dataChecks} checked
    set seen_until = ${until}::timestamptz
    from judged
    where checked.company_id = judged.company_id
      and checked.run_with = judged.run_with
      and not judged.is_stale`);
}

/**
 * Lists companies whose data changed since their last check, each with the kinds of checks to run.
 * If companies were chosen for the run, only these are listed.
 */
export async function companiesToCheck(
  db: Executor,
  { runId, kinds }: { readonly runId: string; readonly kinds: readonly CheckKind[] },
): Promise<CompanyToCheck[]> {
  const { companyId, runWith } = dataChecks;
  return await db
    .select({
      id: companies.id,
      kinds: sql<CheckKind[]>`array_agg(asked.kind order by asked.place)`,
    })
    .from(companies)
    .crossJoin(sql`unnest(${array(kinds, 'text')}) with ordinality as asked (kind, place)`)
    .leftJoin(dataChecks, and(eq(companyId, companies.id), eq(runWith, sql`asked.kind`)))
    .where(
      and(
        isNull(companyId),
        (await countChosen(db, runId, 1)) > 0 ? isChosen(db, runId, companies.id) : undefined,
      ),
    )
    .groupBy(companies.id)
    .orderBy(companies.id);
}
