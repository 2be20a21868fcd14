-- The number of seconds of a month depends on the site's time zone.
create or replace view analytics.interval_coverage as
with days_of_months as (
  select
    d.*, m.month,
    extract(
      epoch
      from metersync.day_start((m.month + interval '1 month')::date, d.time_zone)
        - metersync.day_start(m.month, d.time_zone)
    )::bigint as month_seconds
  from analytics.interval_daily d
    cross join lateral (select date_trunc('month', d.local_date::timestamp)::date as month) m
)
select
  company_id, site_id, meter_id, datasource_type, month,
  min(usage_units) as usage_units,
  standard_units, dimension,
  sum(usage) as usage,
  sum(standard_usage) as standard_usage,
  max(max_kw) as max_kw,
  sum(readings)::integer as readings,
  sum(covered_seconds) as covered_seconds,
  month_seconds,
  round(sum(covered_seconds)::numeric / month_seconds, 4) as coverage,
  count(*)::integer as days,
  (count(*) filter (where covered_seconds = day_seconds))::integer as days_covered,
  sum(estimated_readings)::integer as estimated_readings,
  time_zone, time_zone_source,
  datasource_type as commodity,
  min(units) as units,
  company, site
from days_of_months
group by
  company_id, company, site_id, site, meter_id, datasource_type, month, month_seconds,
  metersync.unit_key(units), standard_units, dimension, time_zone, time_zone_source;
comment on view analytics.interval_coverage is
  'One row for each meter, local month and unit with readings.';
comment on column analytics.interval_coverage.usage is 'Sum of the readings.';
comment on column analytics.interval_coverage.readings is
  'Readings; those with the same start count once.';
comment on column analytics.interval_coverage.coverage is 'covered_seconds / month_seconds.';
comment on column analytics.interval_coverage.days is 'Days with a reading.';
comment on column analytics.interval_coverage.days_covered is
  'Days that readings cover completely.';
