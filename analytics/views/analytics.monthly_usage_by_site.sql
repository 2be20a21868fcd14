create or replace view analytics.monthly_usage_by_site as
select
  company_id,
  site_id,
  datasource_type,
  month,
  units,
  sum(billed_usage) as billed_usage,
  sum(usage) as usage,
  sum(generated_usage) as generated_usage,
  coalesce(
    max(peak_demand) filter (where peak_demand_units = 'kW'),
    max(peak_demand) filter (where peak_demand_units = 'kVA'),
    max(peak_demand) filter (where peak_demand_units = 'kVAR'),
    max(peak_demand)
  ) as peak_demand,
  count(*)::integer as meters,
  (count(*) filter (where is_complete))::integer as meters_complete,
  round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage,
  sum(days_overlapped)::integer as days_overlapped,
  sum(estimated_days)::integer as estimated_days,
  bool_and(is_complete) as is_complete,
  case
    when bool_or(peak_demand_units = 'kW') then 'kW'
    else min(peak_demand_units)
  end as peak_demand_units,
  datasource_type as commodity
from analytics.monthly_usage
group by company_id, site_id, datasource_type, month, units;

comment on view analytics.monthly_usage_by_site is 'monthly_usage of each site, net of exports.';
comment on column analytics.monthly_usage_by_site.month is
  'First day; NULL for what has no dates.';
comment on column analytics.monthly_usage_by_site.units is 'Standard unit of the amounts.';
comment on column analytics.monthly_usage_by_site.billed_usage is 'Sum over meters.';
comment on column analytics.monthly_usage_by_site.usage is 'Sum over meters, each day once.';
comment on column analytics.monthly_usage_by_site.generated_usage is
  'Net-metered generation, which usage leaves out.';
comment on column analytics.monthly_usage_by_site.peak_demand is
  'Highest of any meter: never a sum.';
comment on column analytics.monthly_usage_by_site.meters is
  'Meters billed in the month, or before and after it.';
comment on column analytics.monthly_usage_by_site.meters_complete is 'Complete meters.';
comment on column analytics.monthly_usage_by_site.coverage is
  'Billed part of the days of all its meters.';
comment on column analytics.monthly_usage_by_site.days_overlapped is
  'Days that more than one bill is for.';
comment on column analytics.monthly_usage_by_site.estimated_days is
  'Days whose bill is estimated.';
comment on column analytics.monthly_usage_by_site.is_complete is
  'Whether each day is billed once.';
comment on column analytics.monthly_usage_by_site.peak_demand_units is
  'Unit of peak_demand: first of kW, kVA, kVAR.';
