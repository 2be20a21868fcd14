create or replace view metersync.monthly_usage_by_company_now as
with
  final as (
    {{usage_sums by="company_id" more=", count(distinct site_id)::integer as sites"}}
  )
select
  *
from
  final;
comment on view metersync.monthly_usage_by_company_now is 'The usage by month of a company as a whole, worked out from its months.';
