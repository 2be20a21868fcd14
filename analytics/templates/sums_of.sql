-- The function that adds up the months of a company, kept or not; NULL for records without one.
-- Readers of the view call it. It looks rows up, whatever the statistics of the tables say.
-- Arguments: by, its name; of, the table whose rows it returns; now, the view of them.
create or replace function metersync.{{by}} (company uuid)
returns setof metersync.{{of}}
language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_memoize = off
set jit = off
set max_parallel_workers_per_gather = 0
set plan_cache_mode = force_generic_plan
as $$
begin
  if company is null then
    return query select * from metersync.{{now}} where company_id is null;
  else
    return query select * from metersync.{{now}} where company_id = company;
  end if;
end
$$;

comment on function metersync.{{by}} is 'Rows of analytics.{{of}} of a company, worked out now.';
