import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { CheckName } from '../../contract/check-names.ts';
import type { CheckKind } from '../../contract/names.ts';
import { array, type RowOf } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { companyChanges, dataChecks, journal, monthsKept, runs } from '../schema/metersync.ts';
import { companies, meters } from '../schema/utility.ts';
import type { CompanyToCheck } from './check-data.ts';

/** How long a written row may stay invisible, because its transaction has not ended. */
export const unseenFor = sql`interval '5 minutes'`;

/** Checks whose result changes with the date: what is late, in the future, or lasts a week. */
const kindsOfADay: readonly CheckKind[] = ['bills', 'connections'];

/** Rows that a part of a run changed. */
const rowsChanged = sql`${runs.rowsInserted} + ${runs.rowsChanged} + ${runs.rowsTombstoned}`;

/**
 * Lists companies that a reconcile changed, or whose events were applied since the previous
 * reconcile began.
 */
export async function companiesReconciled(db: Executor, reconcileId: string): Promise<string[]> {
  const before = alias(runs, 'before');
  const result = await db.execute<RowOf<typeof companies.id>>(sql`
    with this_run as (
      select ${runs.startedAt}
      from ${runs}
      where ${runs.runId} = ${reconcileId}::uuid
        and ${runs.companyId} is null
        and ${runs.resource} is null
    ), since as (
      select coalesce(
        max(${before.startedAt}),
        max(this_run.started_at) - interval '1 day'
      ) as at
      from this_run
        left join ${runs} ${before}
          on ${before.companyId} is null
          and ${before.resource} is null
          and ${before.kind} = 'reconcile'
          and ${before.startedAt} < this_run.started_at
    ), changed as (
      select ${runs.companyId}
      from ${runs}
      where ${runs.runId} = ${reconcileId}::uuid
        and ${rowsChanged} > 0
      union
      select company_id
      from (${eventsAppliedSince(sql`(select at from since)`)}
      ) e
    )
    select c.id
    from (select distinct company_id from changed) n
      cross join lateral (
        select ${companies.id}
        from ${companies}
        where ${companies.id} = n.company_id
        offset 0
      ) c
    order by c.id`);
  return result.rows.map(({ id }) => id);
}

/**
 * Deletes checks of companies that may find something else now, because their data changed since, the date
 * changed, or other checks are left out. Extends the other checks, because nothing has changed for them.
 */
export async function deleteOutdatedChecks(db: Executor, off: readonly CheckName[]): Promise<void> {
  const { companyId, runWith, seenUntil, today, checksOff } = dataChecks;
  const isOfCheck = sql`${companyId} = judged.company_id and ${runWith} = judged.run_with`;
  await db.execute(sql`
    with since as (
      select min(${seenUntil}) - ${unseenFor} as at
      from ${dataChecks}
    ), changed as materialized (
      select
        coalesce(e.company_id, m.company_id) as company_id,
        max(e.applied_at) as at
      from (${eventsAppliedSince(sql`(select at from since)`)}
        union all${companiesChangedSince(sql`(select at from since)`)}
      ) e
        left join lateral (
          -- Events of readings name their meter.
          select ${meters.companyId}
          from ${meters}
          where ${meters.id} = e.meter_id
          offset 0
        ) m on true
      group by coalesce(e.company_id, m.company_id)
    ), judged as materialized (
      select
        ${companyId},
        ${runWith},
        ${checksOff} <> ${array(off, 'text')}
          or ${today} <> current_date and ${runWith} = any(${array(kindsOfADay, 'text')})
          or changed.at >= ${seenUntil} - ${unseenFor}
          or read.company_id is not null as is_stale
      from ${dataChecks}
        left join changed on changed.company_id = ${companyId}
        left join lateral (
          select ${runs.companyId}
          from ${runs}
          where ${runs.companyId} = ${companyId}
            and ${runs.resource} is not null
            and ${runs.finishedAt} >= ${seenUntil} - ${unseenFor}
            and ${rowsChanged} > 0
          limit 1
        ) read on true
    ), outdated as (
      delete from ${dataChecks}
      using judged
      where ${isOfCheck}
        and judged.is_stale
    )
    update ${dataChecks}
    set seen_until = now()
    from judged
    where ${isOfCheck}
      and judged.is_stale is not true`);
}

/** Lists companies whose data changed since their last check, each with the checks to make. */
export async function companiesToCheck(
  db: Executor,
  kinds: readonly CheckKind[],
): Promise<CompanyToCheck[]> {
  const { companyId, runWith } = dataChecks;
  const result = await db.execute<{ id: string; kinds: CheckKind[] }>(sql`
    select
      ${companies.id},
      array_agg(asked.kind order by asked.place) as kinds
    from ${companies}
      cross join unnest(${array(kinds, 'text')}) with ordinality as asked (kind, place)
      left join ${dataChecks}
        on ${companyId} = ${companies.id}
        and ${runWith} = asked.kind
    where ${companyId} is null
    group by ${companies.id}
    order by ${companies.id}`);
  return result.rows;
}

/**
 * Companies whose records changed since a time, whoever wrote them. The note of a change stays until
 * the company's months are worked out again.
 */
const companiesChangedSince = (at: SQL): SQL => sql`
  select ${companyChanges.companyId}, null, ${companyChanges.changedAt}
  from ${companyChanges}
  where ${companyChanges.changedAt} between ${at} and 'infinity'
  union all
  select ${monthsKept.companyId}, null, ${monthsKept.keptAt}
  from ${monthsKept}
  where ${monthsKept.keptAt} >= ${at}`;

/**
 * Companies and meters of events that were applied since a time, by a read or at once with nothing to read.
 * Events that were received more than a day before are set aside as they are applied.
 */
const eventsAppliedSince = (at: SQL): SQL => sql`
  select
    ${journal.companyId},
    case when ${journal.kind} = 'interval' then ${journal.recordId} end as meter_id,
    ${appliedAt} as applied_at
  from ${journal}
  -- Both bounds: with one alone the planner expects a third of the journal.
  where ${journal.receivedAt} between ${at} - interval '1 day' and 'infinity'
    and ${journal.outcome} in ('applied', 'superseded')
    and ${appliedAt} >= ${at}
  union all
  select
    ${journal.companyId},
    case when ${journal.kind} = 'interval' then ${journal.recordId} end,
    ${journal.asideAt}
  from ${journal}
  where ${journal.aside} in ('superseded', 'late')
    and ${journal.asideAt} between ${at} and 'infinity'`;

const appliedAt = sql`coalesce(${journal.settledAt}, ${journal.recordedAt})`;
