-- Readings are summed by the hour first, because there are fewer hours than readings, and hours
-- have weekdays. Units are looked up for the sums. Readings of up to an hour count together: in
-- each hour the shortest, and longer readings for the time that shorter readings leave. A meter
-- that has only longer readings counts with its shortest. Power is the sum of all readings with the
-- same start. Only hours with several readings of one start are read again.
create or replace view analytics.load_profile as
with hours as (
  select
    company_id, meter_id, usage_units, granularity_seconds,
    date_trunc('hour', local_start) as local_hour,
    count(*) as readings,
    sum(usage) as usage,
    count(usage) as with_usage,
    max(usage) as highest,
    min(usage) as lowest,
    max(ordinal) > 0 as has_sums
  from analytics.interval_readings
  group by company_id, meter_id, usage_units, local_hour, granularity_seconds
), summed_hours as (
  select
    h.*,
    coalesce(s.readings, h.readings) as starts,
    coalesce(s.with_usage, h.with_usage) as starts_with_usage,
    coalesce(s.highest, h.highest) as highest_sum,
    coalesce(s.lowest, h.lowest) as lowest_sum
  from hours h
    left join lateral (
      select
        count(*) as readings,
        count(usage) as with_usage,
        max(usage) as highest,
        min(usage) as lowest
      from (
        select sum(metersync.amount(i.usage)) as usage
        from utility.meters m
          left join analytics.site_time_zones z on z.site_id = m.site_id
          cross join lateral (select coalesce(z.time_zone, 'UTC') as time_zone) local
          join utility.intervals i on i.meter_id = m.id
            and i.granularity_seconds = h.granularity_seconds
            and i.usage_units = h.usage_units
            and date_trunc('hour', i.start_at at time zone local.time_zone) = h.local_hour
            -- An hour that clocks pass twice is passed again within two hours.
            and i.start_at >= h.local_hour at time zone local.time_zone - interval '2 hours'
            and i.start_at < h.local_hour at time zone local.time_zone + interval '3 hours'
        where m.id = h.meter_id
        group by i.start_at
      ) sums
      where h.has_sums
      offset 0
    ) s on h.has_sums
),
-- How many seconds of an hour have power, and how many of them shorter readings cover. Of the
-- shorter lengths in an hour, the two longest count.
timed_hours as (
  select
    *,
    (granularity_seconds * starts_with_usage)::integer as seconds,
    case
      when lag(local_hour) over meter = local_hour
        then lag((granularity_seconds * starts_with_usage)::integer) over meter
      else 0
    end + case
      when lag(local_hour, 2) over meter = local_hour
        then lag((granularity_seconds * starts_with_usage)::integer, 2) over meter
      else 0
    end as covered_before
  from summed_hours
  window meter as (
    partition by company_id, meter_id, usage_units
    order by local_hour, granularity_seconds
  )
),
-- Longer readings count for the time of an hour that shorter readings leave.
hours_of_week as (
  select
    company_id, meter_id, usage_units, granularity_seconds,
    extract(isodow from local_hour)::integer as weekday,
    extract(hour from local_hour)::integer as hour,
    sum(starts)::integer as readings,
    sum(
      case
        when covered_before = 0 then usage
        else usage * least(seconds, 3600 - covered_before) / nullif(seconds, 0)
      end
    ) as usage,
    sum(
      case when covered_before = 0 then seconds else least(seconds, 3600 - covered_before) end
    ) as seconds,
    max(highest_sum) as highest,
    min(lowest_sum) as lowest,
    min(local_hour)::date as first_day,
    max(local_hour)::date as last_day,
    count(usage) filter (where covered_before = 0) as days
  from timed_hours
  where covered_before < 3600
  group by company_id, meter_id, usage_units, granularity_seconds, weekday, hour
),
-- Only now, because hours are fewer than readings.
hours_of_meters as (
  select
    w.*, m.site_id, m.datasource_type,
    coalesce(z.time_zone, 'UTC') as time_zone,
    coalesce(z.time_zone_source, 'default') as time_zone_source
  from hours_of_week w
    left join utility.meters m on m.id = w.meter_id
    left join analytics.site_time_zones z on z.site_id = m.site_id
), hours_with_unit as (
  {{in_standard_units rows="hours_of_meters" commodity="datasource_type"}}
), hours_with_power as (
  select
    *,
    case dimension
      when 'energy' then factor * 3600 / granularity_seconds
      when 'power' then factor
    end as kw_of_one,
    case when granularity_seconds > 3600 then granularity_seconds else 0 end as length
  from hours_with_unit
  -- The conditions here and below are not plain equations. For an equation the planner would
  -- expect one row in a hundred or fewer, and compare each of these with all rows that they are
  -- joined to.
  where case when dimension in ('energy', 'power') then true else false end
),
-- Hours of readings of up to an hour, or else of each length.
added_hours as (
  select
    company_id, site_id, meter_id, units, dimension, length, time_zone, time_zone_source, weekday,
    hour,
    sum(readings)::integer as readings,
    sum(usage * kw_of_one * granularity_seconds) as kw_seconds,
    nullif(sum(seconds), 0) as seconds,
    max(highest * kw_of_one) as highest,
    min(lowest * kw_of_one) as lowest,
    min(first_day) as first_day,
    max(last_day) as last_day,
    sum(days)::integer as days
  from hours_with_power
  group by
    company_id, meter_id, units, dimension, length, weekday, hour, site_id, time_zone,
    time_zone_source
),
-- Each hour with the shortest length of its unit, and the number of readings in this unit.
hours_with_others as (
  select
    *,
    min(length) over unit as shortest,
    sum(readings) over unit as readings_of_unit
  from added_hours
  window unit as (partition by company_id, meter_id, units)
),
-- Only one unit of a meter counts: units of energy come first, and among them the unit with most
-- readings.
hours_with_choice as (
  select
    *,
    first_value(units) over (
      partition by company_id, meter_id
      order by dimension, readings_of_unit desc, units
    ) as one_unit
  from hours_with_others
), chosen_hours as (
  select
    *,
    count(kw_seconds) over (partition by company_id, meter_id)::integer as hours_with_power
  from hours_with_choice
  where case when length = shortest then units = one_unit else false end
), hours_with_type as ({{with_net_metering rows="chosen_hours"}})
select
  h.company_id, h.site_id, meter_id, weekday, hour, readings,
  round(kw_seconds / seconds, 6) as average_kw,
  round(highest, 6) as max_kw,
  round(lowest, 6) as min_kw,
  time_zone, time_zone_source, net_metering_type, first_day, last_day, days, hours_with_power,
  c.name as company,
  s.name as site
from hours_with_type h
  left join utility.companies c on c.id = h.company_id
  left join utility.sites s on s.id = h.site_id
order by hashtext(meter_id);
comment on view analytics.load_profile is
  'Power of each meter by hour and weekday, from its readings of up to an hour, or else from '
  'longer ones.';
comment on column analytics.load_profile.weekday is '1 Monday to 7 Sunday.';
comment on column analytics.load_profile.hour is '0 to 23.';
comment on column analytics.load_profile.readings is
  'Readings; those with the same start count once.';
comment on column analytics.load_profile.min_kw is 'Lowest mean power of a reading, as max_kw.';
comment on column analytics.load_profile.first_day is 'First local day with readings of the hour.';
comment on column analytics.load_profile.last_day is 'Last local day with readings of the hour.';
comment on column analytics.load_profile.days is 'Days with a reading of the hour.';
comment on column analytics.load_profile.hours_with_power is
  'Hours of the week (of 168) for which the meter has power. Only add meters that have nearly as '
  'many.';
comment on column analytics.load_profile.net_metering_type is 'IMPORT, EXPORT or GENERATION.';
