-- One plain select: Postgres merges it into the queries over it, which `with` would prevent.
create or replace view analytics.interval_readings as
select
  m.company_id, m.site_id, i.meter_id, m.datasource_type, i.start_at,
  i.start_at + i.granularity_seconds * interval '1 second' as end_at,
  i.granularity_seconds,
  metersync.amount(i.usage) as usage,
  i.usage_units,
  case
    when other.unit is null then metersync.in_standard_units(
      metersync.amount(i.usage), coalesce(own.factor, common.factor, 1)
    )
    else metersync.in_standard_units(metersync.amount(i.usage), (other.unit ->> 'factor')::numeric)
  end as standard_usage,
  coalesce(
    own.standard_units, common.standard_units, other.unit ->> 'standard_units', btrim(i.usage_units)
  ) as standard_units,
  coalesce(own.dimension, common.dimension, other.unit ->> 'dimension', 'unknown') as dimension,
  case coalesce(own.dimension, common.dimension, other.unit ->> 'dimension')
    when 'energy' then round(
      metersync.amount(i.usage)
        * coalesce(own.factor, common.factor, (other.unit ->> 'factor')::numeric) * 3600
        / i.granularity_seconds,
      6
    )
    when 'power' then case
      when other.unit is null then metersync.in_standard_units(
        metersync.amount(i.usage), coalesce(own.factor, common.factor)
      )
      else metersync.in_standard_units(
        metersync.amount(i.usage), (other.unit ->> 'factor')::numeric
      )
    end
  end as kw,
  i.quality,
  analytics.standard_quality(i.quality) as standard_quality,
  (i.start_at at time zone coalesce(z.time_zone, 'UTC')) as local_start,
  coalesce(z.time_zone, 'UTC') as time_zone,
  coalesce(z.time_zone_source, 'default') as time_zone_source,
  i.updated, i.synced_at,
  m.datasource_type as commodity,
  coalesce(own.units, common.units, other.unit ->> 'units', btrim(i.usage_units)) as units,
  i.ordinal
from utility.intervals i
  left join utility.meters m on m.id = i.meter_id
  left join analytics.site_time_zones z on z.site_id = m.site_id
  left join ops.unit_factors own on own.units = i.usage_units
    and own.datasource_type = m.datasource_type
  left join ops.unit_factors common on common.units = i.usage_units
    and common.datasource_type = ''
  cross join lateral (
    select case
      when own.units is null and common.units is null
        then (select metersync.unit_spellings()) -> metersync.unit_key(i.usage_units)
    end as units
  ) spelled
  cross join lateral (
    select coalesce(spelled.units -> m.datasource_type, spelled.units -> '') as unit
  ) other
where m.deleted_at is null;
comment on view analytics.interval_readings is
  'One row for each reading of a live meter. A condition on start_at limits which months are read.';
comment on column analytics.interval_readings.kw is
  'Mean power of the reading, for energy and power.';
comment on column analytics.interval_readings.quality is
  'ACTUAL, ESTIMATED, …, as the service sent it.';
comment on column analytics.interval_readings.standard_quality is
  'valid, edited, estimated, questionable, derived, forecast or unknown.';
comment on column analytics.interval_readings.ordinal is
  'Distinguishes readings with the same start, length and unit.';
comment on column analytics.interval_readings.synced_at is 'When the read began that brought it.';
