create or replace view analytics.monthly_cost as
select
  company_id,
  site_id,
  meter_id,
  datasource_type,
  currency,
  month,
  cost,
  days_in_month,
  days_covered,
  round(days_covered::numeric / days_in_month, 4) as coverage,
  (days_billed - days_covered)::integer as days_overlapped,
  coalesce(cardinality(bill_ids), 0) as bills,
  bill_ids,
  datasource_type as commodity
from (
  select
    company_id,
    site_id,
    meter_id,
    datasource_type,
    currency,
    month,
    days_in_month,
    sum(share) as cost,
    coalesce(sum(days), 0) as days_billed,
    (
      case
        when count(days) <= 1 then coalesce(sum(days), 0)
        else metersync.days_in(range_agg(days_here))
      end
    )::integer as days_covered,
    array_agg(distinct bill_id) filter (where days > 0 or month is null) as bill_ids
  from (
    select
      c.company_id,
      c.site_id,
      c.meter_id,
      c.datasource_type,
      c.currency,
      c.bill_id,
      m.month,
      m.days_in_month,
      m.days,
      c.period * m.dates as days_here,
      case
        when m.days > 0
          or c.period is null then metersync.share(c.cost, m.before, m.through, m.total, greatest(scale(c.cost), 2))
      end as share
    from analytics.bill_costs c
      cross join lateral (
        select
          first::date as month,
          daterange(first::date, (first + interval '1 month')::date) as dates,
          (first + interval '1 month')::date - first::date as days_in_month,
          first::date - lower(c.period) as before,
          least((first + interval '1 month')::date, upper(c.period))
            - lower(c.period) as through,
          upper(c.period) - lower(c.period) as total,
          least((first + interval '1 month')::date, upper(c.period))
            - greatest(first::date, lower(c.period)) as days
        from generate_series(
          date_trunc('month', lower(c.period)::timestamp),
          upper(c.period) - 1,
          interval '1 month'
        ) as first
        union all
        select
          null,
          null,
          null,
          0,
          1,
          1,
          null
        where c.period is null
      ) m
  ) shared
  group by company_id, meter_id, month, currency, site_id, datasource_type, days_in_month
) grouped;

comment on view analytics.monthly_cost is
  'Cost of each meter in each calendar month and currency, from its bills spread evenly over their days. Months of a bill add up to its cost exactly.';
comment on column analytics.monthly_cost.meter_id is 'Meter; NULL for bills without usage.';
comment on column analytics.monthly_cost.days_in_month is 'Days of the month.';
comment on column analytics.monthly_cost.days_covered is 'Days that at least one bill is for.';
comment on column analytics.monthly_cost.days_overlapped is 'Days that bills are for once more.';
comment on column analytics.monthly_cost.bills is
  'Bills that have days in the month, or no dates where month is NULL.';
comment on column analytics.monthly_cost.bill_ids is 'Their documents.';
