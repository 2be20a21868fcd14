-- metersync.keep_months stores the months. Months without a billed day are stored up to the next
-- bill. Months that have not begun are left out here, so that no stored row depends on the date.
create or replace view analytics.monthly_usage as
select
  m.*,
  m.datasource_type as commodity,
  c.name as company,
  s.name as site
from metersync.monthly_usage m
  left join utility.companies c on c.id = m.company_id
  left join utility.sites s on s.id = m.site_id
where m.month <= current_date
  or m.month is null
  or m.days_covered > 0;
comment on view analytics.monthly_usage is
  'Usage of each meter by month. Months without a billed day are NULL, not zero.';
comment on column analytics.monthly_usage.units is 'Standard unit of usage.';
comment on column analytics.monthly_usage.billed_usage is
  'Share of every bill that counts. A bill''s months sum to it exactly.';
comment on column analytics.monthly_usage.usage is
  'Usage, each day counted once from its newest bill, for the billed part of the month.';
comment on column analytics.monthly_usage.extrapolated_usage is
  'usage, scaled to the whole month: an estimate.';
comment on column analytics.monthly_usage.original_usage is 'billed_usage in original_units.';
comment on column analytics.monthly_usage.original_units is
  'Unit of the bills; NULL where they use several.';
comment on column analytics.monthly_usage.generated_usage is
  'Net-metered generation, which usage leaves out.';
comment on column analytics.monthly_usage.peak_demand is
  'Highest demand of a bill of the month. A bill for several months counts in each.';
comment on column analytics.monthly_usage.coverage is 'days_covered / days_in_month.';
comment on column analytics.monthly_usage.estimated_days is 'Days whose bill is estimated.';
comment on column analytics.monthly_usage.peak_demand_units is
  'kW, kVA or kVAR; NULL where unknown.';
