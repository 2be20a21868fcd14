-- Usage of bills next to the readings of the same local days. Records of one bill, meter, period
-- and unit are added up, because records for parts of the day are compared with one sum of
-- readings. Demand is left out, because it is not added up. Arguments: usage and days, rows of
-- analytics.usage and of analytics.interval_daily.
with billed as (
  select
    company_id,
    min(site_id::text)::uuid as site_id,
    meter_id, bill_id,
    min(usage_id::text)::uuid as usage_id,
    period,
    standard_units as units,
    sum(standard_usage * metersync.usage_sign(null, usage, is_excluded)) as billed_usage,
    bool_or(is_estimated) as is_estimated
  from {{usage}}
  where not metersync.is_power(dimension)
  group by company_id, meter_id, bill_id, coalesce(bill_id, usage_id), period, standard_units
), billed_days as (
  select
    b.*, d.standard_usage, d.covered_seconds, d.time_zone, d.time_zone_source,
    d.units as day_units,
    min(d.units) over (
      partition by b.company_id, b.meter_id, b.usage_id, d.local_date
    ) as first_units
  from billed b
    join {{days}} d on d.company_id = b.company_id
      and d.meter_id = b.meter_id
      and d.standard_units = b.units
      and d.local_date >= lower(b.period)
      and d.local_date < upper(b.period)
),
-- A meter may send the same amount in two units. Only the readings in one unit of a day count.
days_of_one_unit as (select * from billed_days where day_units = first_units),
compared as (
  select
    company_id, site_id, meter_id, bill_id, usage_id, period, units, billed_usage, is_estimated,
    sum(standard_usage) as interval_usage,
    sum(covered_seconds) as covered_seconds,
    min(time_zone) as time_zone,
    min(time_zone_source) as time_zone_source
  from days_of_one_unit
  group by
    company_id, meter_id, usage_id, site_id, bill_id, period, units, billed_usage, is_estimated
)
select
  company_id, site_id, meter_id, bill_id, usage_id, period, units, billed_usage, interval_usage,
  round(
    covered_seconds / extract(
      epoch
      from metersync.day_start(upper(period), time_zone)
        - metersync.day_start(lower(period), time_zone)
    ),
    4
  ) as interval_coverage,
  interval_usage - billed_usage as difference,
  round((interval_usage - billed_usage) / nullif(abs(billed_usage), 0), 4) as relative_difference,
  is_estimated, time_zone, time_zone_source
from compared
