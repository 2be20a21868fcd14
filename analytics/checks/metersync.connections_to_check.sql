-- Returns the rows of metersync.unwell_connections for one company, with their meters.
create or replace function metersync.connections_to_check (company uuid) returns table (
  connection_id uuid,
  status text,
  status_class text,
  since timestamptz,
  what_to_do text,
  detail text,
  meters text[]
) language sql stable rows 20
set
  enable_seqscan = off
set
  enable_bitmapscan = off
set
  enable_hashjoin = off
set
  enable_mergejoin = off
set
  plan_cache_mode = force_generic_plan as $$
  select
    u.connection_id,
    u.status,
    u.status_class,
    u.since,
    u.what_to_do,
    u.detail,
    array(
      select m.meter_id
      from analytics.connection_meters m
      where m.connection_id = u.connection_id
    )
  from metersync.unwell_connections u
  where u.company_id = company
$$;
comment on function metersync.connections_to_check is 'The connections of a company that collect nothing, for its checks.';
