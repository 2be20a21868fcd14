-- Readings that begin in a time which an earlier reading covers, and how far both cover it.
-- Overlaps that touch one another are one overlap. Several readings with the same start and length
-- are not an overlap, because other views add them up.
create or replace view analytics.interval_overlaps as
with followed_readings as (
  select
    *,
    max(end_at) over (meter rows between unbounded preceding and 1 preceding) as held_until,
    lag(granularity_seconds) over meter as before_seconds
  from analytics.interval_readings
  where usage is not null
    and ordinal = 0
  window meter as (
    partition by company_id, meter_id, metersync.unit_key(usage_units)
    order by start_at, granularity_seconds
  )
), overlapping_readings as (
  select
    company_id, site_id, meter_id,
    metersync.unit_key(usage_units) as units,
    usage_units, granularity_seconds, before_seconds, start_at,
    least(end_at, held_until) as overlap_end,
    time_zone, time_zone_source
  from followed_readings
  where start_at < held_until
), chained_readings as (
  select
    *,
    max(overlap_end) over (
      partition by company_id, meter_id, units
      order by start_at, granularity_seconds rows between unbounded preceding and 1 preceding
    ) as ends_before
  from overlapping_readings
), numbered_overlaps as (
  select
    *,
    count(*) filter (where start_at > ends_before) over (
      partition by company_id, meter_id, units
      order by start_at, granularity_seconds
    ) as overlap
  from chained_readings
)
select
  company_id, site_id, meter_id,
  min(usage_units) as usage_units,
  min(start_at) as overlap_start,
  max(overlap_end) as overlap_end,
  extract(epoch from max(overlap_end) - min(start_at))::bigint as seconds,
  count(*)::integer as readings,
  array(
    select distinct unnest(array_agg(granularity_seconds) || array_agg(before_seconds))
    order by 1
  ) as granularities,
  bool_or(granularity_seconds <> before_seconds) as mixes_resolutions,
  time_zone, time_zone_source
from numbered_overlaps
group by company_id, site_id, meter_id, units, time_zone, time_zone_source, overlap;
comment on view analytics.interval_overlaps is
  'One row for each span that several readings of a meter and unit cover with different starts or '
  'lengths.';
comment on column analytics.interval_overlaps.readings is
  'Readings that begin where another covers.';
comment on column analytics.interval_overlaps.granularities is
  'Lengths of the readings, the shortest first.';
