import { type SQL, sql } from 'drizzle-orm';
import type { CheckKind, CheckName } from '../contract/names.ts';
import { array } from './arrays.ts';
import type { CompanyToCheck } from './check-data.ts';
import type { Executor } from './connect.ts';

/** A row that was written before a check began may be seen by nobody until its transaction ends: for so long at most. */
const unseenFor = sql`interval '5 minutes'`;

/** Checks that a day makes a difference for: what is late, what is in the future, what lasts for a week. */
const kindsOfADay: readonly CheckKind[] = ['bills', 'connections'];

/** All companies, in order; also those that the service no longer has, whose issues have to close. */
export async function allCompanies(db: Executor): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`select id from utility.companies order by id`);
  return result.rows.map((row) => row.id);
}

/**
 * Companies that a reconcile changed something for, or an event that was applied since the reconcile before began.
 */
export async function companiesReconciled(db: Executor, reconcileId: string): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`
    with whole as (
      select started_at
      from metersync.runs
      where run_id = ${reconcileId}::uuid
        and company_id is null
        and resource is null
    ), since as (
      select coalesce(max(r.started_at), max(w.started_at) - interval '1 day') as at
      from whole w
        left join metersync.runs r
          on r.company_id is null
          and r.resource is null
          and r.kind = 'reconcile'
          and r.started_at < w.started_at
    ), changed as (
      select company_id
      from metersync.runs
      where run_id = ${reconcileId}::uuid
        and rows_inserted + rows_changed + rows_tombstoned > 0
      union
      select company_id
      from (${eventsAppliedSince(sql`(select at from since)`)}) e
    )
    select c.id
    from (select distinct company_id from changed) n
      cross join lateral (
        select id from utility.companies where id = n.company_id offset 0
      ) c
    order by c.id`);
  return result.rows.map((row) => row.id);
}

/**
 * Forgets of which companies the data was checked since it changed: by a run or an event, or with another date where that
 * matters, or with other checks left out. Of the others it notes that nothing changed until now.
 */
export async function forgetChanged(db: Executor, off: readonly CheckName[]): Promise<void> {
  await db.execute(sql`
    with since as (
      select min(seen_until) - ${unseenFor} as at
      from metersync.data_checks
    ), told as materialized (
      select coalesce(e.company_id, m.company_id) as company_id, max(e.applied_at) as at
      from (${eventsAppliedSince(sql`(select at from since)`)}) e
        left join lateral (
          -- Readings are told of by their meter.
          select m.company_id from utility.meters m where m.id = e.meter_id offset 0
        ) m on true
      group by coalesce(e.company_id, m.company_id)
    ), judged as materialized (
      select
        c.company_id,
        c.run_with,
        c.checks_off <> ${array(off, 'text')}
          or c.today <> current_date and c.run_with = any (${array(kindsOfADay, 'text')})
          or t.at >= c.seen_until - ${unseenFor}
          or read.company_id is not null as is_stale
      from metersync.data_checks c
        left join told t on t.company_id = c.company_id
        left join lateral (
          select r.company_id
          from metersync.runs r
          where r.company_id = c.company_id
            and r.resource is not null
            and r.finished_at >= c.seen_until - ${unseenFor}
            and r.rows_inserted + r.rows_changed + r.rows_tombstoned > 0
          limit 1
        ) read on true
    ), forgotten as (
      delete from metersync.data_checks c
      using judged j
      where c.company_id = j.company_id
        and c.run_with = j.run_with
        and j.is_stale
    )
    update metersync.data_checks c
    set seen_until = now()
    from judged j
    where c.company_id = j.company_id
      and c.run_with = j.run_with
      and j.is_stale is not true`);
}

/** Companies whose data was not checked since it changed, in order, each with the checks that are to be made. */
export async function companiesToCheck(db: Executor, kinds: readonly CheckKind[]): Promise<CompanyToCheck[]> {
  const result = await db.execute<{ id: string; kinds: CheckKind[] }>(sql`
    select c.id, array_agg(k.kind order by k.place) as kinds
    from utility.companies c
      cross join unnest(${array(kinds, 'text')}) with ordinality as k (kind, place)
      left join metersync.data_checks d on d.company_id = c.id and d.run_with = k.kind
    where d.company_id is null
    group by c.id
    order by c.id`);
  return result.rows;
}

/** Whom events are of that were applied since a time: those that were read for, and those that left nothing to read. */
const eventsAppliedSince = (at: SQL): SQL => sql`
  select
    case when s.kind <> 'interval' then metersync.uuid_of(s.owner) end as company_id,
    case when s.kind = 'interval' then s.owner end as meter_id,
    s.settled_at as applied_at
  from (
    -- Both bounds: of one alone the planner thinks that a third of the log is within it.
    select kind, owner, outcome, settled_at
    from metersync.settlements
    where settled_at between ${at} and 'infinity' offset 0
  ) s
  where s.outcome in ('applied', 'superseded')
  union all
  select e.company_id, null, e.recorded_at
  from metersync.journal e
  where e.received_at between ${at} - interval '1 day' and 'infinity'
    and e.recorded_at >= ${at}
    and e.arrived_as = 'applied'`;
