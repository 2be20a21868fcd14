-- The load of a site or company at a moment is the sum of the mean power of its meters' readings
-- that cover this moment, whatever their lengths. It only rises where a reading begins, so the sum
-- of all changes so far is compared at each beginning and end. Powers are decimal numbers, so that
-- these sums are exact. Of each meter one unit counts, as in load_profile, and a longer reading
-- does not count where a shorter one of the meter overlaps it. All levels are computed together,
-- because Postgres can then use a condition on the company for each of them. Readings are looked up
-- by the meter.
create or replace view analytics.peak_loads as
with series as (
  select
    company_id, site_id, meter_id, datasource_type, time_zone, usage_units,
    count(*) as readings,
    min(granularity_seconds) as shortest
  from analytics.interval_readings
  where usage is not null
  group by company_id, meter_id, usage_units, site_id, datasource_type, time_zone
), series_with_unit as ({{in_standard_units rows="series" commodity="datasource_type"}}),
series_with_others as (
  select
    *,
    sum(readings) over unit as readings_of_unit,
    min(shortest) over unit as shortest_of_unit
  from series_with_unit
  where case when dimension in ('energy', 'power') then true else false end
  window unit as (partition by company_id, meter_id, metersync.unit_key(units))
), series_with_choice as (
  select
    *,
    first_value(metersync.unit_key(units)) over (
      partition by company_id, meter_id
      order by dimension, readings_of_unit desc, units
    ) as one_unit
  from series_with_others
), series_with_type as ({{with_net_metering rows="series_with_choice"}}),
-- The load of a reading's meter counts for three places, each described by one text, because texts
-- are compared for each reading.
places as (
  select
    s.company_id, s.meter_id, s.dimension, s.factor,
    array_agg(s.usage_units) as spellings,
    min(s.shortest_of_unit) as shortest,
    array[
      jsonb_build_array('meter', s.site_id, s.meter_id, s.datasource_type)::text,
      jsonb_build_array('site', s.site_id, null, s.datasource_type)::text,
      jsonb_build_array('company', null, null, s.datasource_type)::text
    ] as places,
    array[s.time_zone, s.time_zone, s.company_time_zone] as time_zones
  from (
    select
      t.*,
      case
        when min(t.time_zone) over of_company = max(t.time_zone) over of_company then t.time_zone
        else coalesce(o.time_zone, 'UTC')
      end as company_time_zone
    from series_with_type t
      left join ops.company_overrides o on o.company_id = t.company_id
    where metersync.unit_key(t.units) = t.one_unit
      and coalesce(t.net_metering_type, '') not in ('EXPORT', 'GENERATION')
    window of_company as (partition by t.company_id)
  ) s
  group by
    s.company_id, s.meter_id, s.dimension, s.factor, s.site_id, s.datasource_type, s.time_zone,
    s.company_time_zone
), changes_of_meters as (
  select
    p.company_id, p.places, p.time_zones,
    case p.dimension when 'energy' then p.factor * 3600 else p.factor end as factor,
    e.*
  from places p
    cross join lateral (
      select c.at, c.change, c.meters
      from (
        select
          *,
          lag(end_at) over following as end_before,
          lag(kw) over following as kw_before,
          lead(start_at) over following as next_start
        from (
          select
            i.start_at,
            i.start_at + i.granularity_seconds * interval '1 second' as end_at,
            case p.dimension
              when 'energy' then sum(metersync.amount(i.usage)) / i.granularity_seconds
              else sum(metersync.amount(i.usage))
            end as kw
          from utility.intervals i
          where i.meter_id = p.meter_id
            and i.usage_units = any(p.spellings)
            and i.usage is not null
            and (
              i.granularity_seconds = p.shortest
              or not exists (
                select
                from utility.intervals f
                where f.meter_id = p.meter_id
                  and f.usage_units = any(p.spellings)
                  and f.granularity_seconds < i.granularity_seconds
                  and f.start_at > i.start_at - i.granularity_seconds * interval '1 second'
                  and f.start_at < i.start_at + i.granularity_seconds * interval '1 second'
                  and f.start_at + f.granularity_seconds * interval '1 second' > i.start_at
                  and f.usage is not null
              )
            )
          group by i.start_at, i.granularity_seconds
        ) readings
        window following as (order by start_at, end_at)
      ) f
        cross join lateral (
          -- Where a reading follows another, the end of one and the beginning of the other are one
          -- change.
          select
            start_at,
            case when end_before = start_at then kw - kw_before else kw end,
            case when end_before = start_at then 0 else 1 end
          union all
          select end_at, -kw, -1
          where next_start is distinct from end_at
        ) c (at, change, meters)
      offset 0
    ) e
),
-- The frame of the window includes all changes of the same moment.
loads as (
  select
    c.company_id, p.place, p.time_zone, c.at,
    sum(c.change * c.factor) over so_far as kw,
    sum(c.meters) over so_far as meters_now
  from changes_of_meters c
    cross join lateral unnest(c.places, c.time_zones) as p (place, time_zone)
  window so_far as (partition by c.company_id, p.place, p.time_zone order by c.at)
), peaks as (
  select
    company_id,
    place::jsonb as place,
    time_zone,
    date_trunc('month', at at time zone time_zone)::date as month,
    max(array[kw, -extract(epoch from at), meters_now]) as peak,
    max(meters_now)::integer as meters_of_month
  from loads
  where meters_now > 0
  group by company_id, place, time_zone, month
)
select
  p.place ->> 0 as level,
  p.company_id,
  c.name as company,
  (p.place ->> 1)::uuid as site_id,
  s.name as site,
  p.place ->> 2 as meter_id,
  p.place ->> 3 as commodity,
  p.month,
  round(p.peak[1], 6) as peak_kw,
  t.peak_at,
  t.peak_at at time zone p.time_zone as local_peak_at,
  p.peak[3]::integer as meters,
  p.meters_of_month, p.time_zone
from peaks p
  cross join lateral (select to_timestamp(-p.peak[2]::float8) as peak_at) t
  left join utility.companies c on c.id = p.company_id
  left join utility.sites s on s.id = (p.place ->> 1)::uuid;
comment on view analytics.peak_loads is
  'Highest load of each meter, site and company in each local month, without exports and '
  'generation. A site''s load is the sum of its meters at one moment.';
comment on column analytics.peak_loads.level is 'meter, site or company.';
comment on column analytics.peak_loads.commodity is 'Loads of several commodities are not added.';
comment on column analytics.peak_loads.month is 'First day of the month.';
comment on column analytics.peak_loads.peak_kw is
  'Highest load: the sum of the mean power of readings.';
comment on column analytics.peak_loads.peak_at is 'When the load was that high for the first time.';
comment on column analytics.peak_loads.local_peak_at is 'peak_at in time_zone.';
comment on column analytics.peak_loads.meters is 'Meters with a reading at that moment.';
comment on column analytics.peak_loads.meters_of_month is
  'Most meters with a reading at any moment. If meters is smaller, readings are missing at the '
  'peak.';
comment on column analytics.peak_loads.time_zone is
  'Zone of the site, or the zone that the sites of a company share, or else its own, or UTC.';
