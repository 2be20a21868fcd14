-- Each month next to the same month a year before, if bills cover both; each day counts once. A
-- window finds the month before, because a join of months would depend on the planner's estimate of
-- how many months there are.
create or replace view analytics.year_on_year as
with amounts as (
  select
    company_id, company, site_id, site, meter_id, unmetered_source, commodity, month,
    'usage' as measure,
    units,
    usage as amount,
    is_complete
  from analytics.monthly_usage
  where usage is not null
  union all
  select
    company_id, company, site_id, site, meter_id, null, commodity, month, 'cost', currency, cost,
    days_covered = days_in_month and days_overlapped = 0
  from analytics.monthly_cost
  where cost is not null
), compared as (
  select
    *,
    max(amount) over a_year_before as amount_year_before,
    coalesce(bool_and(is_complete) over a_year_before, false) as was_complete
  from amounts
  window a_year_before as (
    partition by company_id, site_id, meter_id, unmetered_source, commodity, measure, units
    order by month range between interval '1 year' preceding and interval '1 year' preceding
  )
)
select
  company_id, company, site_id, site, meter_id, commodity, month, measure, units, amount,
  amount_year_before,
  amount - amount_year_before as change,
  round((amount - amount_year_before) / nullif(abs(amount_year_before), 0), 4) as relative_change
from compared
where is_complete
  and was_complete
order by hashtext(meter_id);
comment on view analytics.year_on_year is
  'Usage and cost of each meter and month next to a year before, if bills cover each day of both '
  'months once.';
comment on column analytics.year_on_year.month is 'The later month.';
comment on column analytics.year_on_year.measure is 'usage or cost.';
comment on column analytics.year_on_year.units is
  'Standard unit of usage, or currency of cost. Never add several.';
comment on column analytics.year_on_year.change is 'amount - amount_year_before.';
comment on column analytics.year_on_year.relative_change is 'change / amount_year_before.';
