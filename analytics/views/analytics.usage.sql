create or replace view analytics.usage as
select u.*, c.name as company, s.name as site
from metersync.counted_usage u
  left join utility.companies c on c.id = u.company_id
  left join utility.sites s on s.id = u.site_id
order by uuid_hash(usage_id);
comment on view analytics.usage is
  'One row for each usage record that counts: it and its bill exist and are not superseded.';
comment on column analytics.usage.site_id is 'Site of the meter, or else of the document.';
comment on column analytics.usage.datasource_type is
  'Commodity of the meter, or else of the record.';
comment on column analytics.usage.start_date is 'First day, as the service sent it.';
comment on column analytics.usage.end_date is 'Last day, as the service sent it.';
comment on column analytics.usage.last_day is
  'Last day that is billed: a day before end_date if the next bill starts then.';
comment on column analytics.usage.boundary_rule is
  'As in bills; also one_day for periods above ten years, which count on their last day.';
comment on column analytics.usage.date_quality is
  'ok, end_missing, inverted, too_long (over 65 days), future or missing.';
comment on column analytics.usage.counted_days is 'Days that no newer bill of the meter is for.';
comment on column analytics.usage.may_overlap is
  'Whether another record of the meter touches its days.';
comment on column analytics.usage.next_start is 'Start of the meter''s next record.';
comment on column analytics.usage.standard_units is
  'Standard unit of the dimension, or else usage_units.';
comment on column analytics.usage.factor is 'Standard units in one unit.';
comment on column analytics.usage.sign is
  '1; -1 for excluded or exported usage above 0; 0 for generation.';
comment on column analytics.usage.signed_usage is 'standard_usage × sign: what sums are made of.';
comment on column analytics.usage.is_excluded is 'Whether sums subtract it.';
comment on column analytics.usage.net_metering_type is 'IMPORT, EXPORT or GENERATION.';
comment on column analytics.usage.electricity_type is 'USAGE or DEMAND.';
comment on column analytics.usage.supplier is 'Supplier, if not the utility.';
comment on column analytics.usage.utility is 'Utility that sent the bill.';
comment on column analytics.usage.demand_kw is
  'Highest demand of the bill''s demand meters (v2.2).';
