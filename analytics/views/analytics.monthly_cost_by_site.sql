create or replace view analytics.monthly_cost_by_site as
select
  *
from
  (
    {{months of="monthly_cost_by_site"}}
    union all
    select
      null as company_id,
      site_id,
      currency,
      month,
      cost,
      meters,
      coverage
    from
      metersync.monthly_cost_by_site_of (null)
  ) m;
comment on view analytics.monthly_cost_by_site is 'monthly_cost of each site.';
select
  metersync.copy_comments ('analytics.monthly_cost', 'analytics.monthly_cost_by_site');
