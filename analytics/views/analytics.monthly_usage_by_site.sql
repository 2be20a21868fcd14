create or replace view analytics.monthly_usage_by_site as
select
  *
from
  (
    {{months of="monthly_usage_by_site" more=", datasource_type as commodity"}}
    union all
    select
      null as company_id,
      site_id,
      datasource_type,
      month,
      units,
      billed_usage,
      usage,
      generated_usage,
      peak_demand,
      meters,
      meters_complete,
      coverage,
      days_overlapped,
      estimated_days,
      is_complete,
      peak_demand_units,
      datasource_type as commodity
    from
      metersync.monthly_usage_by_site_of (null)
  ) m;
comment on view analytics.monthly_usage_by_site is 'monthly_usage of each site, net of exports.';
comment on column analytics.monthly_usage_by_site.month is 'First day of the month; NULL for what has no dates.';
comment on column analytics.monthly_usage_by_site.units is 'Standard unit of the amounts.';
comment on column analytics.monthly_usage_by_site.billed_usage is 'Sum over meters: bills add up exactly.';
comment on column analytics.monthly_usage_by_site.usage is 'Sum over meters, each day once; NULL without a billed day.';
comment on column analytics.monthly_usage_by_site.generated_usage is 'Net-metered generation, which usage leaves out.';
comment on column analytics.monthly_usage_by_site.peak_demand is 'Highest of any one meter in peak_demand_units: never a sum.';
comment on column analytics.monthly_usage_by_site.meters is 'Meters billed in the month, or before and after it; of unmetered ones accounts.';
comment on column analytics.monthly_usage_by_site.meters_complete is 'Those with each day billed once.';
comment on column analytics.monthly_usage_by_site.coverage is 'Billed part of the days of all its meters.';
comment on column analytics.monthly_usage_by_site.days_overlapped is 'Days that more than one bill is for.';
comment on column analytics.monthly_usage_by_site.estimated_days is 'Days whose bill is estimated.';
comment on column analytics.monthly_usage_by_site.is_complete is 'Whether each day is billed once.';
comment on column analytics.monthly_usage_by_site.peak_demand_units is 'Standard unit of peak_demand: first of kW, kVA, kVAR; NULL where unknown.';
