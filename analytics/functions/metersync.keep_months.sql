-- Computes and stores the months of companies whose records changed. The company with the oldest
-- change comes first, until none is left or the budget of time is spent. The notes of a company's
-- changes are deleted before its records are read, so that a transaction that commits meanwhile
-- keeps its own note. Changes during this transaction wait for the next one. Every lookup uses an
-- index, whatever the statistics of the tables say.
create or replace function metersync.keep_months (budget interval) returns integer language plpgsql
set
  enable_nestloop = on
set
  enable_seqscan = off
set
  enable_bitmapscan = off
set
  enable_hashjoin = on
set
  enable_mergejoin = off
set
  enable_memoize = off
set
  jit = off
set
  max_parallel_workers_per_gather = 0
set
  plan_cache_mode = force_generic_plan as $$
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
    -- Some at a time, because a statement for each of many small companies takes longer than they do.
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
    -- these companies are computed together, once. They are looked for after their notes are
    -- deleted, because a change that was noted may have added more of them.
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
    insert into metersync.monthly_usage
    select * from metersync.monthly_usage_now where company_id = any (concerned);

    delete from metersync.monthly_cost where company_id = any (concerned);
    insert into metersync.monthly_cost
    select * from metersync.monthly_cost_now where company_id = any (concerned);

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
insert into
  metersync.company_changes (company_id)
values
  (null);
