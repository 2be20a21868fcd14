-- Returns those of analytics.connections_needing_attention of one company.
-- It works out nothing for other companies.
create or replace function metersync.connections_to_check(company uuid)
returns table (
  connection_id uuid,
  status text,
  status_class text,
  since timestamptz,
  what_to_do text,
  detail text,
  meters text[]
)
language sql stable rows 20
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
  select
    k.id,
    k.status,
    analytics.status_class(k.status),
    greatest(h.since, metersync.time_of(k.raw ->> 'statusFirstSeenTime')),
    analytics.what_to_do(k.status),
    nullif(k.raw ->> 'statusErrorDetail', ''),
    array(
      select m.meter_id
      from analytics.connection_meters m
      where m.connection_id = k.id
    )
  from utility.connections k
    cross join lateral (
      select max(h.at) as since
      from utility.connection_status_changes h
      where h.connection_id = k.id
        and h.status = k.status
    ) h
  where k.company_id = company
    and k.deleted_at is null
    and k.status <> 'PENDING'
    and analytics.status_class(k.status) <> 'healthy'
$$;

comment on function metersync.connections_to_check is
  'The connections of a company that collect nothing, for its checks.';
