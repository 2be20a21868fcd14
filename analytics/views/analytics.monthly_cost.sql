create or replace view analytics.monthly_cost as
select
  m.*,
  m.datasource_type as commodity,
  c.name as company,
  s.name as site
from
  metersync.monthly_cost m
  left join utility.companies c on c.id = m.company_id
  left join utility.sites s on s.id = m.site_id;
comment on view analytics.monthly_cost is 'Cost of each meter by month and currency, from bills spread evenly over their days. A bill''s months sum to it exactly.';
comment on column analytics.monthly_cost.meter_id is 'Meter; NULL for bills without a meter.';
comment on column analytics.monthly_cost.days_in_month is 'Days in month.';
comment on column analytics.monthly_cost.days_covered is 'Billed days.';
comment on column analytics.monthly_cost.days_overlapped is 'Days that more than one bill covers.';
comment on column analytics.monthly_cost.bills is 'Bills with days in the month, or without dates where month is NULL.';
comment on column analytics.monthly_cost.bill_ids is 'Their documents.';
comment on column analytics.monthly_cost.month is 'First day of the month; NULL for amounts without dates.';
comment on column analytics.monthly_cost.cost is 'Share of the bills'' cost. bill_meters says how a bill is divided among its meters (allocation_method).';
comment on column analytics.monthly_cost.coverage is 'Billed part of the days of all its meters.';
