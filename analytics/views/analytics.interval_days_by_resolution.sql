-- Readings by the local day: split at midnight where one crosses it, by time; each resolution by itself; what is covered
-- is counted once where readings of a resolution overlap. Of most readings neither is true: those are counted in whole
-- seconds, and what depends on their unit is reckoned once a day. A day that a zone left out, as Samoa did in 2011, has no row.
create or replace view analytics.interval_days_by_resolution as
select
  d.company_id,
  d.site_id,
  d.meter_id,
  d.datasource_type,
  d.local_date,
  d.usage_units,
  d.granularity_seconds,
  d.time_zone,
  d.time_zone_source,
  d.readings,
  d.usage,
  d.whole_seconds + d.odd_seconds as covered_seconds,
  d.estimated_readings,
  d.doubtful_readings,
  case coalesce(own.dimension, common.dimension)
    when 'energy' then array[
      round(d.highest[1] * coalesce(own.factor, common.factor) * 3600 / d.granularity_seconds, 6),
      d.highest[2]
    ]
    when 'power' then array[d.highest[1] * coalesce(own.factor, common.factor), d.highest[2]]
  end as highest,
  d.datasource_type as commodity,
  d.usage_units as units
from (
  select
    company_id,
    site_id,
    meter_id,
    datasource_type,
    local_date,
    usage_units,
    granularity_seconds,
    time_zone,
    time_zone_source,
    count(*) filter (where part = 0)::integer as readings,
    sum(usage_here) as usage,
    coalesce(sum(granularity_seconds) filter (where odd_covered is null), 0) as whole_seconds,
    coalesce(sum(odd_covered), 0) as odd_seconds,
    count(*) filter (
      where part = 0
        and standard_quality = 'estimated'
    )::integer as estimated_readings,
    count(*) filter (
      where part = 0
        and standard_quality in ('questionable', 'forecast', 'unknown')
    )::integer as doubtful_readings,
    max(array[usage, - extract(epoch from start_at)]) filter (
      where usage is not null
    ) as highest
  from (
    select
      r.company_id,
      r.site_id,
      r.meter_id,
      r.datasource_type,
      r.local_date + part as local_date,
      r.usage_units,
      r.granularity_seconds,
      r.time_zone,
      r.time_zone_source,
      r.standard_quality,
      r.usage,
      r.start_at,
      part,
      case
        when r.parts = 0 then r.usage
        when s.through > s.before then metersync.share(
          r.usage,
          s.before,
          s.through,
          r.granularity_seconds,
          greatest(scale(r.usage), 6)
        )
      end as usage_here,
      case
        when r.parts = 0
          and r.next_start >= r.end_at then null
        when r.parts = 0 then extract(epoch from r.next_start - r.start_at)
        else greatest(
          0,
          extract(
            epoch from least(r.end_at, r.next_start, s.day_end) - greatest(r.start_at, s.day_start)
          )
        )
      end as odd_covered
    from (
      select
        *,
        unnest(
          case
            when parts = 0 then array[0]
            else array(select generate_series(0, parts))
          end
        ) as part
      from (
        select
          *,
          case
            when granularity_seconds > 3600
              or local_start::time >= time '21:00' then ((end_at - interval '1 microsecond') at time zone time_zone)::date - local_date
            else 0
          end as parts
        from (
          -- Where clocks fall back some minutes after midnight, as those of St. John's did at 00:01 until 2011, these minutes
          -- are the day before's, which goes on after them.
          select
            *,
            local_start::date - case
              when local_start::time < time '01:00' then (start_at < metersync.day_start(local_start::date, time_zone))::integer
              else 0
            end as local_date
          from (
            select
              company_id,
              site_id,
              meter_id,
              datasource_type,
              usage_units,
              granularity_seconds,
              time_zone,
              time_zone_source,
              standard_quality,
              start_at,
              end_at,
              usage,
              local_start,
              coalesce(
                lead(start_at) over (
                  partition by company_id, meter_id, usage_units, granularity_seconds
                  order by start_at
                ),
                'infinity'
              ) as next_start
            from analytics.interval_readings
          ) followed
        ) dated
      ) placed
    ) r
      left join lateral (
        select
          day_start,
          day_end,
          greatest(0, extract(epoch from day_start - r.start_at))::integer as before,
          least(
            r.granularity_seconds,
            extract(epoch from day_end - r.start_at)
          )::integer as through
        from (
          select
            metersync.day_start(r.local_date + part, r.time_zone) as day_start,
            metersync.day_start(r.local_date + part + 1, r.time_zone) as day_end
        ) day
        where r.parts > 0
        offset 0
      ) s on true
    where r.parts = 0
      or s.day_end > s.day_start
  ) split
  group by
    company_id,
    meter_id,
    usage_units,
    granularity_seconds,
    local_date,
    site_id,
    datasource_type,
    time_zone,
    time_zone_source
) d
  left join ops.unit_factors own on own.units = d.usage_units
    and own.datasource_type = d.datasource_type
  left join ops.unit_factors common on common.units = d.usage_units
    and common.datasource_type = '';

comment on view analytics.interval_days_by_resolution is
  'One row for each meter, local day, unit and length of readings: what interval_daily chooses from. A reading that crosses midnight is split by time.';
comment on column analytics.interval_days_by_resolution.local_date is
  'Day in the site''s time zone.';
comment on column analytics.interval_days_by_resolution.usage_units is
  'Unit, as the service names it.';
comment on column analytics.interval_days_by_resolution.granularity_seconds is
  'Length of the readings.';
comment on column analytics.interval_days_by_resolution.readings is
  'Readings that start on the day.';
comment on column analytics.interval_days_by_resolution.usage is 'Sum of what falls on the day.';
comment on column analytics.interval_days_by_resolution.covered_seconds is
  'Seconds of the day that readings cover; overlapping ones once.';
comment on column analytics.interval_days_by_resolution.estimated_readings is
  'Readings that are estimated.';
comment on column analytics.interval_days_by_resolution.doubtful_readings is
  'Readings that are questionable, forecast or of unknown quality.';
comment on column analytics.interval_days_by_resolution.highest is
  'Highest kW, and minus the second since 1970 when the first reading that had it starts.';
