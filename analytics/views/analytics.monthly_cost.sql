create or replace view analytics.monthly_cost as
select
  m.*,
  m.datasource_type as commodity,
  c.name as company,
  s.name as site
from metersync.monthly_cost m
  left join utility.companies c on c.id = m.company_id
  left join utility.sites s on s.id = m.site_id;
comment on view analytics.monthly_cost is
  'Cost of each meter by month and currency. A bill''s months sum to it exactly.';
comment on column analytics.monthly_cost.coverage is 'days_covered / days_in_month.';
comment on column analytics.monthly_cost.cost is
  'Share of the bills'' cost, divided as in bill_meters.';
