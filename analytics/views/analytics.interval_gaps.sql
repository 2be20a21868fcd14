-- Shows how far each reading and the readings before it reach, next to the start of the next
-- reading.
create or replace view analytics.interval_gaps as
with followed_readings as (
  select
    company_id, site_id, meter_id, usage_units, granularity_seconds, time_zone, time_zone_source,
    max(end_at) over (meter rows between unbounded preceding and current row) as held_until,
    lead(start_at) over meter as next_start
  from analytics.interval_readings
  where usage is not null
  window meter as (
    partition by company_id, meter_id, metersync.unit_key(usage_units)
    order by start_at
  )
), gaps as (
  select *, extract(epoch from next_start - held_until) as seconds
  from followed_readings
  where next_start > held_until
)
select
  company_id, site_id, meter_id, usage_units,
  held_until as gap_start,
  next_start as gap_end,
  seconds::bigint as seconds,
  round(seconds / granularity_seconds, 2) as missing_readings,
  granularity_seconds,
  held_until at time zone time_zone as local_start,
  time_zone, time_zone_source
from gaps;
comment on view analytics.interval_gaps is
  'One row for each span without an amount between a meter''s readings in a unit.';
comment on column analytics.interval_gaps.gap_end is 'Where readings go on.';
comment on column analytics.interval_gaps.missing_readings is 'Readings that would fill it.';
comment on column analytics.interval_gaps.granularity_seconds is 'Length of the reading before.';
