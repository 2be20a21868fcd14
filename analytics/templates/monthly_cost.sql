-- Cost by calendar month, computed from the bills. The cost of bills without dates has the month
-- NULL.
with cost_months as (
  select c.*, m.month, m.next_month
  from {{costs}} c
    left join lateral (
      select first::date as month, (first + interval '1 month')::date as next_month
      from generate_series(
        date_trunc('month', lower(c.period)::timestamp),
        upper(c.period) - 1, interval '1 month'
      ) as first
    ) m on true
), spread as (
  select
    *,
    next_month - month as days_in_month,
    month - lower(period) as before,
    least(next_month, upper(period)) - lower(period) as through,
    upper(period) - lower(period) as total,
    least(next_month, upper(period)) - greatest(month, lower(period)) as days
  from cost_months
), shares as (
  select
    company_id, site_id, meter_id, datasource_type, currency, bill_id, month, days_in_month, days,
    -- A bit for each day of the month.
    ((1::bigint << days) - 1) << greatest(0, -before) as days_here,
    case
      when period is null then cost
      when days > 0 then metersync.share(cost, before, through, total, greatest(scale(cost), 2))
    end as share
  from spread
), monthly as (
  select
    company_id, site_id, meter_id, datasource_type, currency, month, days_in_month,
    sum(share) as cost,
    coalesce(sum(days), 0) as days_billed,
    coalesce(bit_count(bit_or(days_here)::bit(64)), 0)::integer as days_covered,
    array_agg(distinct bill_id) filter (where days > 0 or month is null) as bill_ids
  from shares
  group by company_id, meter_id, month, currency, site_id, datasource_type, days_in_month
)
select
  company_id, site_id, meter_id, datasource_type, currency, month, cost, days_in_month,
  days_covered,
  round(days_covered::numeric / days_in_month, 4) as coverage,
  (days_billed - days_covered)::integer as days_overlapped,
  coalesce(cardinality(bill_ids), 0) as bills,
  bill_ids
from monthly
