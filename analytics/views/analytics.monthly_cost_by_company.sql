create or replace view analytics.monthly_cost_by_company as
select
  *
from
  (
    {{months of="monthly_cost_by_company"}}
    union all
    select
      null as company_id,
      currency,
      month,
      cost,
      sites,
      meters,
      coverage
    from
      metersync.monthly_cost_by_company_of (null)
  ) m;
comment on view analytics.monthly_cost_by_company is 'monthly_cost of each company.';
select
  metersync.copy_comments ('analytics.monthly_cost', 'analytics.monthly_cost_by_company');
