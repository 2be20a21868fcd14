create or replace view analytics.bill_interval_comparison as
select r.*, c.name as company, s.name as site
from ({{bill_readings usage="analytics.usage" days="analytics.interval_daily"}}) r
  left join utility.companies c on c.id = r.company_id
  left join utility.sites s on s.id = r.site_id;
comment on view analytics.bill_interval_comparison is
  'Billed usage of each bill, meter, period and unit, without demand, next to the readings of '
  'these days.';
comment on column analytics.bill_interval_comparison.units is 'Standard unit of usage.';
comment on column analytics.bill_interval_comparison.interval_usage is 'Sum of the readings.';
comment on column analytics.bill_interval_comparison.interval_coverage is
  'Part of the period that readings cover.';
comment on column analytics.bill_interval_comparison.difference is 'interval_usage - billed_usage.';
comment on column analytics.bill_interval_comparison.relative_difference is
  'difference / billed_usage.';
