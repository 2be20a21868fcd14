-- Works out the cost by month of a company; NULL for records without one. Readers of
-- analytics.monthly_cost call it. It looks records up, whatever the statistics of the tables say.
create or replace function metersync.monthly_cost_of(company uuid)
returns setof metersync.monthly_cost
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
    return query select * from metersync.monthly_cost_now where company_id is null;
  else
    return query select * from metersync.monthly_cost_now where company_id = company;
  end if;
end
$$;

comment on function metersync.monthly_cost_of is
  'The cost by month of a company, worked out now.';
