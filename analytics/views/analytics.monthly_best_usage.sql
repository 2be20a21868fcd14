create or replace view analytics.monthly_best_usage as
with
  interval_months as (
    select
      company_id,
      min(site_id::text)::uuid as site_id,
      meter_id,
      min(datasource_type) as datasource_type,
      month,
      standard_units as units,
      sum(standard_usage) as usage,
      max(coverage) as coverage
    from
      analytics.interval_coverage
    where
      not metersync.is_power (dimension)
    group by
      company_id,
      meter_id,
      month,
      standard_units
    having
      count(*) = 1
  ),
  -- With the sign of the meter's bills, so that no month is of another.
  typed_months as ({{with_net_metering rows="interval_months"}}),
  signed_months as (
    select
      *,
      usage * metersync.usage_sign (net_metering_type, usage, false) as signed_usage
    from
      typed_months
  ),
  final as (
    select
      company_id,
      coalesce(b.site_id, i.site_id) as site_id,
      meter_id,
      coalesce(b.datasource_type, i.datasource_type) as datasource_type,
      month,
      units,
      case
        when i.coverage >= 0.95 then i.signed_usage
        else b.usage
      end as usage,
      case
        when i.coverage >= 0.95 then 'interval'
        when b.usage is not null then 'bill_proration'
      end as method,
      b.usage as billed_usage,
      b.coverage as billed_coverage,
      b.is_complete,
      b.bills,
      b.bill_ids,
      i.signed_usage as interval_usage,
      i.coverage as interval_coverage,
      coalesce(b.datasource_type, i.datasource_type) as commodity
    from
      analytics.monthly_usage b
      full join signed_months i using (company_id, meter_id, month, units)
  )
select
  *
from
  final;
comment on view analytics.monthly_best_usage is 'Usage of each meter and month, by readings where they cover 95 %, else by bills.';
comment on column analytics.monthly_best_usage.month is 'First day of the month; NULL for what has no dates.';
comment on column analytics.monthly_best_usage.units is 'Standard unit of the amounts.';
comment on column analytics.monthly_best_usage.usage is 'interval_usage or billed_usage, as method says, signed.';
comment on column analytics.monthly_best_usage.method is 'interval; bill_proration: bills spread over their days; NULL where neither is known.';
comment on column analytics.monthly_best_usage.billed_usage is 'Usage, each day counted once.';
comment on column analytics.monthly_best_usage.billed_coverage is 'Part of the month that bills are for.';
comment on column analytics.monthly_best_usage.is_complete is 'Whether each day is billed once.';
comment on column analytics.monthly_best_usage.bills is 'Bills with days in the month.';
comment on column analytics.monthly_best_usage.bill_ids is 'Their documents.';
comment on column analytics.monthly_best_usage.interval_usage is 'Sum of the readings: negative for exports, 0 for generation, as its newest usage record says, else the meter.';
comment on column analytics.monthly_best_usage.interval_coverage is 'Part of the month that readings cover.';
