create or replace view analytics.monthly_usage_by_company as
select
  *
from
  (
    {{months of="monthly_usage_by_company" more=", datasource_type as commodity"}}
    union all
    select
      null as company_id,
      datasource_type,
      month,
      units,
      billed_usage,
      usage,
      generated_usage,
      peak_demand,
      sites,
      meters,
      meters_complete,
      coverage,
      days_overlapped,
      estimated_days,
      is_complete,
      peak_demand_units,
      datasource_type as commodity
    from
      metersync.monthly_usage_by_company_of (null)
  ) m;
comment on view analytics.monthly_usage_by_company is 'monthly_usage of each company, net of exports.';
select
  metersync.copy_comments ('analytics.monthly_usage_by_site', 'analytics.monthly_usage_by_company');
