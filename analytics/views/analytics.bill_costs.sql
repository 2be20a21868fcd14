-- The costs of bill_meters.
create or replace view analytics.bill_costs as
select
  bill_id, company_id, site_id, meter_id,
  commodity as datasource_type,
  currency, period, cost, allocation_method, bill_cost, cost_source, commodity
from analytics.bill_meters;
comment on view analytics.bill_costs is
  'Some columns of bill_meters. Parts add up to the bill exactly.';
select metersync.copy_comments('analytics.bill_meters', 'analytics.bill_costs');
