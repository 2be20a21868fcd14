-- Kept months of companies that did not change since; those of the others are worked out now.
create or replace view analytics.monthly_cost as
select
  k.company_id,
  k.site_id,
  k.meter_id,
  k.datasource_type,
  k.currency,
  k.month,
  k.cost,
  k.days_in_month,
  k.days_covered,
  k.coverage,
  k.days_overlapped,
  k.bills,
  k.bill_ids,
  k.datasource_type as commodity
from metersync.monthly_cost k
where exists (
  select
  from metersync.kept_companies c
  where c.company_id = k.company_id
)
union all
select
  c.company_id,
  n.site_id,
  n.meter_id,
  n.datasource_type,
  n.currency,
  n.month,
  n.cost,
  n.days_in_month,
  n.days_covered,
  n.coverage,
  n.days_overlapped,
  n.bills,
  n.bill_ids,
  n.datasource_type as commodity
from metersync.changed_companies c
  cross join lateral metersync.monthly_cost_of(c.company_id) n
union all
select
  null,
  n.site_id,
  n.meter_id,
  n.datasource_type,
  n.currency,
  n.month,
  n.cost,
  n.days_in_month,
  n.days_covered,
  n.coverage,
  n.days_overlapped,
  n.bills,
  n.bill_ids,
  n.datasource_type as commodity
from metersync.monthly_cost_of(null) n;

comment on view analytics.monthly_cost is
  'Cost of each meter by month and currency, from bills spread evenly over their days. A '
  'bill''s months sum to it exactly.';
comment on column analytics.monthly_cost.meter_id is 'Meter; NULL for bills without usage.';
comment on column analytics.monthly_cost.days_in_month is 'Days in month.';
comment on column analytics.monthly_cost.days_covered is 'Billed days.';
comment on column analytics.monthly_cost.days_overlapped is
  'Days that more than one bill is for.';
comment on column analytics.monthly_cost.bills is
  'Bills with days in the month, or without dates where month is NULL.';
comment on column analytics.monthly_cost.bill_ids is 'Their documents.';
comment on column analytics.monthly_cost.month is
  'First day of the month; NULL for what has no dates.';
comment on column analytics.monthly_cost.cost is 'Share of the bills'' cost.';
comment on column analytics.monthly_cost.coverage is 'Billed part of the days of all its meters.';
