create or replace view analytics.bill_interval_comparison as
with
  usage_days as (
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
      min(d.usage_units) over (partition by u.company_id, u.meter_id, u.usage_id) as first_units
    from analytics.usage u
      join analytics.interval_daily d on d.company_id = u.company_id
        and d.meter_id = u.meter_id
        and d.standard_units = u.standard_units
        and d.local_date >= lower(u.period)
        and d.local_date < upper(u.period)
  ),
  -- A meter may send one amount in two units: readings of one count.
  days_of_one_unit as (
    select *
    from usage_days
    where usage_units = first_units
  ),
  read_usage as (
    select
      company_id,
      meter_id,
      usage_id,
      sum(standard_usage) as usage,
      sum(covered_seconds) as covered_seconds,
      min(lower(period)) as first_day,
      max(upper(period)) as until_day,
      min(time_zone) as time_zone,
      min(time_zone_source) as time_zone_source
    from days_of_one_unit
    group by company_id, meter_id, usage_id
  ),
  covered as (
    select
      *,
      metersync.day_start(until_day, time_zone)
        - metersync.day_start(first_day, time_zone) as span
    from read_usage
  ),
  compared as (
    select
      u.*,
      i.usage as interval_usage,
      round(i.covered_seconds / extract(epoch from i.span), 4) as interval_coverage,
      i.usage - u.standard_usage as difference,
      i.time_zone,
      i.time_zone_source
    from covered i
      join analytics.usage u on u.company_id = i.company_id
        and u.meter_id = i.meter_id
        and u.usage_id = i.usage_id
  ),
  final as (
    select
      company_id,
      site_id,
      meter_id,
      bill_id,
      usage_id,
      period,
      standard_units as units,
      standard_usage as billed_usage,
      interval_usage,
      interval_coverage,
      difference,
      round(difference / nullif(abs(standard_usage), 0), 4) as relative_difference,
      is_estimated,
      time_zone,
      time_zone_source
    from compared
  )
select * from final;

comment on view analytics.bill_interval_comparison is
  'Each usage record beside its meter''s readings of the same local days.';
comment on column analytics.bill_interval_comparison.usage_id is 'Id of the usage record.';
comment on column analytics.bill_interval_comparison.period is 'Days, half-open.';
comment on column analytics.bill_interval_comparison.units is 'Standard unit of the amounts.';
comment on column analytics.bill_interval_comparison.billed_usage is 'Billed usage.';
comment on column analytics.bill_interval_comparison.interval_usage is 'Interval usage.';
comment on column analytics.bill_interval_comparison.interval_coverage is
  'Part of it that readings cover.';
comment on column analytics.bill_interval_comparison.difference is
  'interval_usage - billed_usage.';
comment on column analytics.bill_interval_comparison.relative_difference is
  'difference / billed_usage.';
comment on column analytics.bill_interval_comparison.is_estimated is 'Is estimated.';
