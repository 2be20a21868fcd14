-- Works out how far bills reach only for connections that a check finds.
create or replace function metersync.find_connection_issues (company uuid, today date)
returns table (check_name text, entity_id text, subject text, evidence jsonb)
language sql stable rows 20
set enable_hashjoin = on
set enable_mergejoin = on as $$
  with found as materialized (
    select
      u.*,
      array(
        select m.meter_id
        from analytics.connection_meters m
        where m.connection_id = u.connection_id
      ) as meters
    from metersync.unwell_connections u
    where u.company_id = company
      and (u.status_class = 'unknown' or u.since < today - 7 or u.since is null)
  ), billed as (
    select meter_id, max(upper(period)) - 1 as until
    from metersync.usage_to_check(company)
    where exists (select from found)
    group by meter_id
  ), reaching as (
    select f.connection_id, max(b.until) as until
    from found f
      cross join lateral unnest(f.meters) as m(id)
      join billed b on b.meter_id = m.id
    group by f.connection_id
  )
  select
    case f.status_class when 'unknown' then 'unknown_status' else 'unhealthy_connection' end,
    f.connection_id::text, coalesce(f.status, ''),
    jsonb_build_object(
      'status', f.status,
      'since', f.since,
      'what_to_do', f.what_to_do,
      'data_until', r.until,
      'detail', f.detail
    )
  from found f
    left join reaching r on r.connection_id = f.connection_id
$$;
