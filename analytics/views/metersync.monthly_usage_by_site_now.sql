create or replace view metersync.monthly_usage_by_site_now as
with
  final as ({{usage_sums by="company_id, site_id"}})
select
  *
from
  final;
comment on view metersync.monthly_usage_by_site_now is 'The usage by month of the sites of a company, worked out from its months.';
