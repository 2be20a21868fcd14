-- Resolutions of a day are never added. The shortest that covers the day counts.
-- Where none covers it, the one that covers most of it counts.
create or replace view analytics.interval_daily as
with
  days as (
    select
      d.*,
      day.day_seconds,
      d.covered_seconds >= day.day_seconds as is_covered
    from
      analytics.interval_days_by_resolution d
      cross join lateral (
        -- Worked out once a day.
        select
          extract(
            epoch
            from
              metersync.day_start (d.local_date + 1, d.time_zone) - metersync.day_start (d.local_date, d.time_zone)
          ) as day_seconds
        offset
          0
      ) day
  ),
  days_with_unit as ({{in_standard_units rows="days" commodity="datasource_type"}}),
  ranked as (
    select
      *,
      row_number() over (
        partition by
          company_id,
          meter_id,
          usage_units,
          local_date
        order by
          is_covered desc,
          case
            when is_covered then granularity_seconds
          end,
          covered_seconds desc,
          granularity_seconds
      ) as choice,
      array_agg(granularity_seconds) over (
        partition by
          company_id,
          meter_id,
          usage_units,
          local_date
      ) as resolutions
    from
      days_with_unit
  ),
  final as (
    select
      company_id,
      site_id,
      meter_id,
      datasource_type,
      local_date,
      usage_units,
      granularity_seconds,
      usage,
      usage * factor as standard_usage,
      standard_units,
      dimension,
      highest[1] as max_kw,
      to_timestamp(- highest[2]::float8) as max_kw_at,
      readings,
      round(day_seconds / granularity_seconds, 2) as expected_readings,
      covered_seconds::integer as covered_seconds,
      day_seconds::integer as day_seconds,
      round(covered_seconds / day_seconds, 4) as coverage,
      estimated_readings,
      doubtful_readings,
      resolutions,
      time_zone,
      time_zone_source,
      datasource_type as commodity,
      usage_units as units
    from
      ranked
    where
      choice = 1
  )
select
  *
from
  final;
comment on view analytics.interval_daily is 'One row for each meter, local day and unit with readings, of the resolution that covers it best.';
comment on column analytics.interval_daily.local_date is 'Local date.';
comment on column analytics.interval_daily.usage_units is 'Unit, as the service names it.';
comment on column analytics.interval_daily.granularity_seconds is 'Length of the readings that count: the shortest that covers the day, else the one that covers most.';
comment on column analytics.interval_daily.usage is 'Sum of the readings; for units of power of their means: see max_kw.';
comment on column analytics.interval_daily.standard_usage is 'Usage in standard_units.';
comment on column analytics.interval_daily.standard_units is 'Standard unit of the dimension (ops.unit_factors).';
comment on column analytics.interval_daily.dimension is 'energy, power, volume, mass, …; unknown without a factor.';
comment on column analytics.interval_daily.max_kw is 'Highest mean power of a reading; readings with the same start count together.';
comment on column analytics.interval_daily.max_kw_at is 'Start of the first reading that has it.';
comment on column analytics.interval_daily.readings is 'Readings that start on the day; those with the same start count once.';
comment on column analytics.interval_daily.expected_readings is 'Readings that fill the day: 92, 96 or 100 of 15 minutes.';
comment on column analytics.interval_daily.covered_seconds is 'Seconds that amounts cover, overlapping ones once.';
comment on column analytics.interval_daily.day_seconds is 'Seconds of the day.';
comment on column analytics.interval_daily.coverage is 'covered_seconds / day_seconds.';
comment on column analytics.interval_daily.estimated_readings is 'Estimated readings; those with the same start count once, if any of them is estimated.';
comment on column analytics.interval_daily.doubtful_readings is 'Questionable, forecast or of unknown quality; those with the same start count once, if any of them is.';
comment on column analytics.interval_daily.resolutions is 'Lengths of all readings of the day.';
