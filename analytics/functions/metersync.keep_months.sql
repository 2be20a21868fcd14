-- Computes and stores the months of companies whose records changed. The company with the oldest
-- change comes first, until none is left or the budget of time is spent. The notes of a company's
-- changes are deleted before its records are read, so that a transaction that commits meanwhile
-- keeps its own note. Changes during this transaction wait for the next one. All statements use
-- generic plans, because planning for the parameters takes longer than computing a few companies.
create or replace function metersync.keep_months (budget interval) returns integer
language plpgsql
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
  concerned uuid[];
  all_changed_at timestamptz;
  kept integer := 0;
begin
  -- A change that concerns all companies becomes a note for each of them.
  with everything as (
    delete from metersync.company_changes
    where company_id is null
    returning changed_at
  )
  select min(changed_at)
  into all_changed_at
  from everything;
  if all_changed_at is not null then
    insert into metersync.company_changes (company_id, changed_at)
    select company_id, all_changed_at
    from (
      select id as company_id from utility.companies
      union
      select company_id from metersync.company_changes where is_kept
    ) companies;
  end if;

  loop
    -- Several companies at a time, because for many small companies, separate statements would take
    -- longer than the work on the companies.
    select array_agg(distinct company_id)
    into concerned
    from (
      select company_id
      from metersync.company_changes
      where not is_kept
        and changed_at < now()
        and company_id is not null
      order by changed_at
      limit 20
    ) changed;
    exit when concerned is null;
    -- Months also depend on records of other companies if a company's records name them. All of
    -- these companies are computed together, once. These companies are looked for after their notes
    -- are deleted, because a noted change may have added further companies.
    loop
      delete from metersync.company_changes where company_id = any (concerned) and not is_kept;
      exit when not found;
      with recursive
        group_of_changed (company_id) as (
          select unnest(concerned)
          union
          select n.company_id
          from group_of_changed c
            cross join lateral (
              select u.company_id
              from utility.documents d
                cross join lateral (
                  select company_id from utility.usage_data where document_id = d.id offset 0
                ) u
              where d.company_id = c.company_id
              union all
              select u.company_id
              from utility.meters m
                cross join lateral (
                  select company_id from utility.usage_data where meter_id = m.id offset 0
                ) u
              where m.company_id = c.company_id
              union all
              select p.company_id
              from utility.documents d
                cross join lateral (
                  select company_id from utility.documents where revised_document_id = d.id offset 0
                ) p
              where d.company_id = c.company_id
            ) n
          where n.company_id is not null
        )
      select array_agg(company_id)
      into concerned
      from group_of_changed;
    end loop;

    delete from metersync.monthly_usage where company_id = any (concerned);
    delete from metersync.monthly_cost where company_id = any (concerned);
    -- As in metersync.monthly_usage_now and monthly_cost_now, with usage computed once for both.
    with
      usage as materialized (
        select
          company_id,
          site_id,
          meter_id,
          datasource_type,
          bill_id,
          period,
          period_days,
          date_quality,
          counted_days,
          may_overlap,
          next_start,
          usage,
          usage_units,
          units,
          standard_usage,
          standard_units,
          dimension,
          factor,
          sign,
          signed_usage,
          is_estimated,
          billed_demand,
          unmetered_source,
          demand_kw,
          demand_kva,
          demand_kvar
        from metersync.counted_usage
        where company_id = any (concerned)
      ),
      bills as (
        select * from analytics.bills where company_id = any (concerned)
      ),
      bill_meters as ({{bill_meters usage="usage" bills="bills"}}),
      usage_months as (
        insert into metersync.monthly_usage
        {{monthly_usage usage="usage"}}
      )
    insert into metersync.monthly_cost
    {{monthly_cost costs="bill_meters"}};

    delete from metersync.company_changes where company_id = any (concerned) and is_kept;
    insert into metersync.company_changes (company_id, is_kept)
    select unnest(concerned), true;
    kept := kept + cardinality(concerned);
    exit when clock_timestamp() > now() + budget;
  end loop;
  return kept;
end
$$;

-- New versions of views may find something else, so all months are computed again.
insert into metersync.company_changes (company_id) values (null);
