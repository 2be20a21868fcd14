create or replace view analytics.monthly_cost_by_company as
select
  company_id,
  currency,
  month,
  sum(cost) as cost,
  count(distinct site_id)::integer as sites,
  count(distinct meter_id)::integer as meters,
  round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage
from analytics.monthly_cost
group by company_id, currency, month;

comment on view analytics.monthly_cost_by_company is 'monthly_cost of each company.';

select metersync.copy_comments('analytics.monthly_cost', 'analytics.monthly_cost_by_company');
