create or replace view analytics.bill_line_items as
select
  b.bill_id, b.company_id, b.site_id, b.period, b.currency,
  i.ordinality as seq,
  r."description" as description,
  nullif(r."chargeType", '') as charge_type,
  case
    when r."electricityChargeType" <> '' then r."electricityChargeType"
    else nullif(r."gasChargeType", '')
  end as supply_or_delivery,
  c.datasource_type,
  coalesce(metersync.boolean_of(r."electricityIsDemand"), false) as is_demand,
  nullif(r."electricityTimeOfUse", '') as time_of_use,
  metersync.number_of(r."quantity") as quantity,
  nullif(r."quantityUnits", '') as quantity_units,
  metersync.number_of(r."rate") as rate,
  metersync.number_of(r."totalCharge") as amount,
  nullif(r."billingPeriod", '') as billing_period,
  metersync.is_current_line(r."billingPeriod") as is_current,
  r."accountIds" as account_ids,
  c.datasource_type as commodity,
  b.company, b.site, b.provider, b.invoice_id
from analytics.bills b
  join utility.documents d on d.id = b.bill_id and d.company_id = b.company_id
  cross join jsonb_array_elements(metersync.elements(d.raw -> 'lineItems')) with ordinality as i
  cross join lateral jsonb_to_record(
    case when jsonb_typeof(i.value) = 'object' then i.value else '{}' end
  ) as r (
    "description" text, "chargeType" text, "electricityChargeType" text, "gasChargeType" text,
    "electricityIsDemand" text, "electricityTimeOfUse" text, "quantity" text, "quantityUnits" text,
    "rate" text, "totalCharge" text, "billingPeriod" text, "accountIds" jsonb
  )
  cross join lateral (
    select metersync.line_commodity(
      r."electricityChargeType", r."gasChargeType",
      metersync.boolean_of(r."electricityIsDemand"),
      r."electricityTimeOfUse"
    ) as datasource_type
  ) c;
comment on view analytics.bill_line_items is 'One row for each line of a bill that counts.';
comment on column analytics.bill_line_items.seq is 'Place on the bill, from 1.';
comment on column analytics.bill_line_items.charge_type is 'USAGE, FIXED, TAX, …';
comment on column analytics.bill_line_items.supply_or_delivery is 'SUPPLY, DELIVERY, …';
comment on column analytics.bill_line_items.billing_period is 'CURRENT, or the period of the line.';
comment on column analytics.bill_line_items.is_current is
  'Whether it is part of the bill''s cost; lines of other periods are not.';
