-- Processes one company after another, in the order of their ids. Two sessions that checked one
-- company at the same time would open an issue twice, so the session that first notes the company
-- checks it first, and the other session checks it afterwards. Sessions that check other companies
-- never wait. No plan depends on the statistics of the tables. The settings also hold in the
-- functions that are called from here; they only affect how rows are joined. Statements that look
-- up open issues by id or company ask for rows without a closed_reason. If they asked for rows
-- without a closed_at, a plan that was made while few issues were open would read all open issues
-- from their index, and Postgres would keep this plan.
create or replace function ops.refresh_data_issues (
  companies uuid[],
  kinds text[] default array['bills', 'connections', 'intervals'],
  today date default current_date, checks_off text[] default '{}'
) returns table (opened integer, closed integer, still_open integer)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set max_parallel_workers_per_gather = 0
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  company uuid;
  refreshed record;
begin
  opened := 0;
  closed := 0;
  still_open := 0;
  if checks_off <> '{}' then
    -- Issues are looked up by the name of their check, and locked in the order of their ids, as
    -- every session does.
    with ids as materialized (
      select i.id
      from unnest(checks_off) as off (check_name)
        cross join lateral (
          select i.id
          from ops.data_issues i
          where i.closed_at is null
            and i.check_name = off.check_name
          offset 0
        ) i
    ), off as (
      select i.id
      from (select distinct id from ids order by id) o
        cross join lateral (
          select i.id
          from ops.data_issues i
          where i.id = o.id
            and i.closed_reason is null
          offset 0
          for no key update
        ) i
    )
    update ops.data_issues i
    set
      closed_at = clock_timestamp(),
      closed_reason = 'check_off'
    from off
    where i.id = off.id;
    get diagnostics closed = row_count;
  end if;
  for company in
    select distinct id from unnest(companies) as id where id is not null order by id
  loop
    insert into metersync.data_checks (company_id, run_with, seen_until, today, checks_off)
    select company, kind, metersync.changes_seen_until(), today, checks_off
    from unnest(kinds) as kind
    group by kind
    order by kind
    on conflict (company_id, run_with) do update
    set
      seen_until = excluded.seen_until,
      today = excluded.today,
      checks_off = excluded.checks_off;

    -- This is a separate statement, so that it sees the changes of a session that checked the
    -- company first.
    with checks as materialized (
      select check_name, entity_type, severity
      from ops.data_issue_checks
      where run_with = any (kinds)
        and check_name <> all (checks_off)
    ), evidence as (
      select * from metersync.find_bill_issues(company, today)
      where 'bills' = any (kinds)
      union all
      select * from metersync.find_unreadable_values(company)
      where 'bills' = any (kinds)
      union all
      select * from metersync.find_connection_issues(company, today)
      where 'connections' = any (kinds)
      union all
      select * from metersync.find_interval_issues(company, today)
      where 'intervals' = any (kinds)
    ), found as materialized (
      select distinct on (e.check_name, e.entity_id, e.subject)
        e.*,
        -- A check that applies to any kind of record says which kind it found, and a check that
        -- also finds small things says which of them are only information.
        coalesce(e.evidence ->> 'entity_type', c.entity_type) as entity_type,
        coalesce(e.evidence ->> 'severity', c.severity) as severity
      from evidence e
        join checks c on c.check_name = e.check_name
      order by e.check_name, e.entity_id, e.subject, e.evidence::text desc
    ), matched as materialized (
      -- With the id of the open issue; NULL if there is none.
      select f.*, i.id
      from found f
        left join lateral (
          select i.id
          from ops.data_issues i
          where i.closed_at is null
            and i.check_name = f.check_name
            and i.entity_type = f.entity_type
            and i.entity_id = f.entity_id
            and i.subject = f.subject
          offset 0
        ) i on true
    ), changed as (
      -- Most issues have not changed, and are written once a day at most: when an issue was last
      -- seen is only exact to the day.
      update ops.data_issues i
      set
        last_seen_at = clock_timestamp(),
        company_id = company,
        evidence = k.evidence,
        severity = k.severity
      from matched k
      where i.id = k.id
        and i.closed_reason is null
        and (
          i.last_seen_at < current_date
          or (i.company_id, i.severity, i.evidence)
            is distinct from (company, k.severity, k.evidence)
        )
    ), fresh as (
      -- A conflict means that a session that checks another company has opened the issue since: a
      -- record that moves is checked for both companies.
      insert into ops.data_issues
        (check_name, severity, company_id, entity_type, entity_id, subject, evidence)
      select check_name, severity, company, entity_type, entity_id, subject, evidence
      from matched
      where id is null
      on conflict do nothing
      returning id
    ), gone as (
      update ops.data_issues i
      set
        closed_at = clock_timestamp(),
        closed_reason = case
          when i.check_name in (select check_name from checks) then 'evidence_gone'
          else 'check_removed'
        end
      where i.closed_reason is null
        and i.company_id = company
        and (i.check_name in (select check_name from checks)
          or i.check_name not in (select check_name from ops.data_issue_checks))
        and i.id not in (select id from matched where id is not null)
      returning i.id
    )
    select
      (select count(*) from fresh) as opened,
      (select count(*) from gone) as closed,
      (select count(id) from matched) as still_open
    into refreshed;
    opened := opened + refreshed.opened;
    closed := closed + refreshed.closed;
    still_open := still_open + refreshed.still_open;
  end loop;
  return next;
end
$$;
comment on function ops.refresh_data_issues is
  'Runs the checks of the given kinds for companies. Opens an issue for new evidence, keeps '
  'issues whose evidence is still there, and closes the others. Checks that are turned off open '
  'no issues, and their open issues are closed, for all companies. An issue that returns is a new '
  'row.';
comment on column ops.data_issues.last_seen_at is
  'When a check last found the issue. Exact only to the day, unless its evidence changed then.';

-- New versions of views and checks may find something else, so everything is checked again.
delete from metersync.data_checks;
