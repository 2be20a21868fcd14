-- A meter may have readings in several units that are standardized to one: one of them counts.
create or replace view analytics.bill_interval_comparison as
with
  billed_days as (
    select
      u.company_id,
      u.meter_id,
      u.usage_id,
      u.period,
      d.standard_usage,
      d.covered_seconds,
      d.time_zone,
      d.time_zone_source,
      d.usage_units,
      min(d.usage_units) over (partition by u.company_id, u.meter_id, u.usage_id) as one_of
    from analytics.usage u
      join analytics.interval_daily d on d.company_id = u.company_id
        and d.meter_id = u.meter_id
        and d.standard_units = u.standard_units
        and d.local_date >= lower(u.period)
        and d.local_date < upper(u.period)
  ),
  billed_readings as (
    select
      company_id,
      meter_id,
      usage_id,
      sum(standard_usage) as usage,
      sum(covered_seconds) as covered_seconds,
      min(lower(period)) as first_day,
      max(upper(period)) as until,
      min(time_zone) as time_zone,
      min(time_zone_source) as time_zone_source
    from billed_days
    where usage_units = one_of
    group by company_id, meter_id, usage_id
  ),
  coverage as (
    select
      *,
      extract(
        epoch from metersync.day_start(until, time_zone)
          - metersync.day_start(first_day, time_zone)
      ) as seconds
    from billed_readings
  ),
  final as (
    select
      u.company_id,
      u.site_id,
      u.meter_id,
      u.bill_id,
      u.usage_id,
      u.period,
      u.standard_units as units,
      u.standard_usage as billed_usage,
      r.usage as interval_usage,
      round(r.covered_seconds / r.seconds, 4) as interval_coverage,
      r.usage - u.standard_usage as difference,
      round(
        (r.usage - u.standard_usage) / nullif(abs(u.standard_usage), 0),
        4
      ) as relative_difference,
      u.is_estimated,
      r.time_zone,
      r.time_zone_source
    from coverage r
      join analytics.usage u on u.company_id = r.company_id
        and u.meter_id = r.meter_id
        and u.usage_id = r.usage_id
  )
select * from final;

comment on view analytics.bill_interval_comparison is
  'Each usage record of a bill beside the readings of its meter over the same local days. Only '
  'where interval_coverage is 1 can they be equal.';
comment on column analytics.bill_interval_comparison.usage_id is 'The usage record.';
comment on column analytics.bill_interval_comparison.period is 'Days that it is for, half-open.';
comment on column analytics.bill_interval_comparison.units is 'Standard unit of the amounts.';
comment on column analytics.bill_interval_comparison.billed_usage is 'What was billed.';
comment on column analytics.bill_interval_comparison.interval_usage is
  'What readings of these days add up to.';
comment on column analytics.bill_interval_comparison.interval_coverage is
  'Part of the period that readings cover.';
comment on column analytics.bill_interval_comparison.difference is
  'interval_usage - billed_usage.';
comment on column analytics.bill_interval_comparison.relative_difference is
  'difference / billed_usage.';
comment on column analytics.bill_interval_comparison.is_estimated is
  'Whether the bill is estimated.';
