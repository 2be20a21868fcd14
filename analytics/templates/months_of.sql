-- The function metersync.<of>_of: the months of a company, or sums of them, worked out now; NULL
-- for records without one. Readers of the view call it. It looks rows up, and joins them by hash,
-- whatever the statistics of the tables say.
-- Argument: of, the table whose rows it returns.
create or replace function metersync.{{of}}_of (company uuid) returns setof metersync.{{of}} language plpgsql stable parallel safe security definer
set
  search_path = pg_catalog,
  pg_temp
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
begin
  if company is null then
    return query select * from metersync.{{of}}_now where company_id is null;
  else
    return query select * from metersync.{{of}}_now where company_id = company;
  end if;
end
$$;
comment on function metersync.{{of}}_of is 'Rows of analytics.{{of}} of a company, worked out now.';
