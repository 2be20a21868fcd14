create or replace view metersync.monthly_cost_by_company_now as
select
  company_id,
  currency,
  month,
  sum(cost) as cost,
  count(distinct site_id)::integer as sites,
  count(distinct meter_id)::integer as meters,
  round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage
from
  analytics.monthly_cost
group by
  company_id,
  currency,
  month;
comment on view metersync.monthly_cost_by_company_now is 'The cost by month of a company as a whole, worked out from its months.';
