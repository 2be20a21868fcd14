-- The costs of bill_meters.
create or replace view analytics.bill_costs as
select
  bill_id, company_id, site_id, meter_id,
  commodity as datasource_type,
  currency, period, cost, allocation_method, bill_cost, cost_source, commodity
from analytics.bill_meters;
comment on view analytics.bill_costs is
  'One row for each bill and meter on it. Parts add up to the bill exactly. bill_meters has more '
  'columns.';
select metersync.copy_comments('analytics.bill_meters', 'analytics.bill_costs');
