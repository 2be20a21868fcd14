-- Runs the checks of the readings of a company. Each check is a select of the union. Readings are
-- compared with bills using the days and the usage that the first two steps gather.
create or replace function metersync.find_interval_issues (company uuid, today date)
returns table (check_name text, entity_id text, subject text, evidence jsonb)
language sql stable rows 100
set enable_hashjoin = on
set enable_mergejoin = on as $$
  with days as materialized (
    select
      *,
      date_trunc('month', local_date::timestamp)::date as month,
      min(local_date) over meter as first_day,
      max(local_date) over meter as last_day
    from metersync.days_to_check(company)
    window meter as (partition by meter_id, units)
  ), usage as materialized (
    select *
    from metersync.usage_to_check(company)
    where exists (select from days)
      and meter_id is not null
      and period is not null
  ),
  -- The first and the last day of a meter's readings are left out, because they are seldom whole.
  months as (
    select
      meter_id, units, time_zone, month,
      greatest(month, first_day + 1) as first_day,
      least((month + interval '1 month')::date, last_day) as until,
      sum(covered_seconds)::numeric as covered
    from days
    where local_date > first_day
      and local_date < last_day
    group by meter_id, units, time_zone, month, first_day, last_day
  ), covered_months as (
    select
      *,
      extract(
        epoch
        from metersync.day_start(until, time_zone) - metersync.day_start(first_day, time_zone)
      ) as seconds
    from months
  ), compared as ({{bill_readings usage="usage" days="days"}}),
  qualities as (
    select m.id, q.*
    from utility.meters m
      cross join lateral (
        select
          i.quality,
          count(*) as readings,
          min(i.start_at) as since,
          count(*) filter (
            where metersync.amount(i.usage) is null
              and (i.unreadable -> 'usage') is null
          ) as unusable,
          count(i.unreadable) as unreadable,
          min(i.start_at) filter (where i.unreadable is not null) as first_unreadable,
          max(i.ordinal) > 0 as shares_times
        from utility.intervals i
        where i.meter_id = m.id
        group by i.quality
        offset 0
      ) q
    where m.company_id = company
      and m.deleted_at is null
  ), unread as (
    select id, sum(unreadable) as readings, min(first_unreadable) as since
    from qualities
    group by id
    having sum(unreadable) > 0
  )
  select
    'interval_coverage', meter_id,
    to_char(month, 'YYYY-MM') || ' ' || units,
    jsonb_build_object(
      'from', first_day,
      'until', until,
      'coverage', round(covered / seconds, 4),
      'percent', round(100 * covered / seconds, 1),
      'units', units
    )
  from covered_months
  where covered < 0.95 * seconds
  union all
  select
    'clock_change', meter_id, local_date || ' ' || units,
    jsonb_build_object(
      'day', local_date,
      'readings', readings,
      'expected', expected_readings,
      'time_zone', time_zone,
      'time_zone_source', time_zone_source
    )
  from days
  where day_seconds <> 86400
    and readings * granularity_seconds = 86400
    -- Not on a day with readings of several lengths.
    and expected_readings = round(day_seconds::numeric / granularity_seconds, 2)
  union all
  select
    'interval_bill_mismatch', usage_id::text, '',
    jsonb_build_object(
      'billed', billed_usage,
      'readings', interval_usage,
      'units', units,
      'relative_difference', relative_difference,
      'bill', bill_id
    )
  from compared
  where interval_coverage = 1
    and abs(relative_difference) > 0.02
  union all
  select
    'no_time_zone', company::text, '',
    jsonb_build_object('sites', count(distinct z.site_id))
  from (select distinct id from qualities) q
    join utility.meters m on m.id = q.id
    join analytics.site_time_zones z on z.site_id = m.site_id
  where z.time_zone_source = 'default'
  having count(*) > 0
  union all
  select
    'unknown_quality', id, quality,
    jsonb_build_object('quality', quality, 'readings', readings, 'since', since)
  from qualities
  where quality is not null
    and analytics.standard_quality(quality) = 'unknown'
  union all
  select
    'several_readings', m.id, '',
    jsonb_build_object(
      'since', t.since,
      'times', t.times,
      'amounts', e.amounts,
      'units', e.usage_units
    )
  from (select id from qualities group by id having bool_or(shares_times)) m
    cross join lateral (
      select
        min(i.start_at) as since,
        count(distinct (i.start_at, i.granularity_seconds, i.usage_units)) as times
      from utility.intervals i
      where i.meter_id = m.id
        and i.ordinal > 0
    ) t
    cross join lateral (
      select
        array_to_string(
          (array_agg(metersync.amount(i.usage) order by i.ordinal desc))[1:4],
          ' and ', 'none'
        ) as amounts,
        i.usage_units
      from utility.intervals i
      where i.meter_id = m.id
        and i.start_at = t.since
      group by i.granularity_seconds, i.usage_units
      having max(i.ordinal) > 0
      order by i.granularity_seconds, i.usage_units
      limit 1
    ) e
  union all
  select
    'unusable_reading', id, '',
    jsonb_build_object('readings', sum(unusable), 'since', min(since))
  from qualities
  group by id
  having sum(unusable) > 0
  union all
  select
    'unreadable_reading', u.id, '',
    jsonb_build_object(
      'readings', u.readings,
      'since', u.since,
      'field', first.field,
      'text', first.text,
      'said', '"' || first.text || '"'
    )
  from unread u
    cross join lateral (
      select f.field, left(f.text, 200) as text
      from utility.intervals i
        cross join lateral jsonb_each_text(i.unreadable) as f(field, text)
      where i.meter_id = u.id
        and i.start_at = u.since
        and i.unreadable is not null
      order by f.field, f.text
      limit 1
    ) first
$$;
