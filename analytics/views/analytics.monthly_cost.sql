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
  'Cost of each meter by month and currency, from bills spread evenly over their days. A bill''s '
  'months sum to it exactly.';
comment on column analytics.monthly_cost.meter_id is 'Meter; NULL for bills without a meter.';
comment on column analytics.monthly_cost.cost is
  'Share of the bills'' cost. bill_meters says how a bill is divided among its meters '
  '(allocation_method).';
