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
  'One row for each bill and meter on it, with what was used and what it cost. Costs add up to '
  'the bill exactly.';
comment on column analytics.bill_meters.site_id is 'Site of the meter, or else of the document.';
comment on column analytics.bill_meters.meter_id is 'Meter; NULL for bills without a meter.';
comment on column analytics.bill_meters.commodity is
  'Commodity of the meter; NULL for bills without a meter.';
comment on column analytics.bill_meters.period is
  'Days of the meter''s usage on the bill, or else of the bill, or else its date; a half-open '
  'range.';
comment on column analytics.bill_meters.usage is
  'Usage of the bill in units, with the sign that it has in sums: excluded and exported usage is '
  'subtracted. NULL if it is in several units. Demand is not included.';
comment on column analytics.bill_meters.units is
  'Standard unit of usage; NULL where it is in several.';
comment on column analytics.bill_meters.cost is 'The meter''s part of the bill''s cost.';
comment on column analytics.bill_meters.cost_per_unit is 'cost / usage; NULL without usage.';
comment on column analytics.bill_meters.allocation_method is
  'How the cost of the bill was divided. direct: it has one meter. line_items: its lines by use '
  'or demand, and fees, taxes and demand in several units equally. equal: its lines have no '
  'usable amounts. none: it has no meter.';
comment on column analytics.bill_meters.bill_cost is 'Cost of the bill.';
comment on column analytics.bill_meters.cost_source is 'Which charges cost is: see bills.';
