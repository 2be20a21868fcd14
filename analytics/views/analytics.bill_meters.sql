create or replace view analytics.bill_meters as
select
  b.bill_id, b.company_id,
  c.name as company,
  b.site_id,
  s.name as site,
  b.provider, b.account_number, b.invoice_id, b.meter_id,
  metersync.meter_number(m.raw) as meter_number,
  b.datasource_type as commodity,
  b.period,
  lower(b.period) as first_day,
  upper(b.period) - 1 as last_day,
  b.usage, b.units, b.cost, b.currency,
  round(b.cost / nullif(b.usage, 0), 6) as cost_per_unit,
  b.allocation_method, b.bill_cost, b.cost_source
from ({{bill_meters usage="metersync.counted_usage" bills="analytics.bills"}}) b
  left join utility.companies c on c.id = b.company_id
  left join utility.sites s on s.id = b.site_id
  left join utility.meters m on m.id = b.meter_id
order by uuid_hash(b.bill_id);
comment on view analytics.bill_meters is
  'One row for each bill and meter, with what was used and what it cost. Costs add up to the bill '
  'exactly.';
comment on column analytics.bill_meters.period is
  'Days of the meter''s usage on the bill, or else of the bill, or else its date.';
comment on column analytics.bill_meters.usage is
  'Usage of the bill without demand, signed as in sums; NULL in several units.';
comment on column analytics.bill_meters.units is 'Standard unit of usage.';
comment on column analytics.bill_meters.cost is 'The meter''s part of bill_cost.';
comment on column analytics.bill_meters.cost_per_unit is 'cost / usage.';
comment on column analytics.bill_meters.allocation_method is
  'How bill_cost was divided: direct (one meter), line_items (lines by use, by demand, the others '
  'equally), equal (no usable lines) or none (no meter).';
comment on column analytics.bill_meters.bill_cost is 'cost of the bill.';
comment on column analytics.bill_meters.cost_source is 'As in bills.';
