-- Cost by calendar month, as bills have it. The cost of bills without dates stands in month NULL.
create or replace view analytics.monthly_cost as
with
  cost_months as (
    select
      c.*,
      m.month,
      m.next_month
    from analytics.bill_costs c
      left join lateral (
        select
          first::date as month,
          (first + interval '1 month')::date as next_month
        from generate_series(
          date_trunc('month', lower(c.period)::timestamp),
          upper(c.period) - 1,
          interval '1 month'
        ) as first
      ) m on true
  ),
  spread as (
    select
      *,
      next_month - month as days_in_month,
      month - lower(period) as before,
      least(next_month, upper(period)) - lower(period) as through,
      upper(period) - lower(period) as total,
      least(next_month, upper(period)) - greatest(month, lower(period)) as days
    from cost_months
  ),
  shares as (
    select
      company_id,
      site_id,
      meter_id,
      datasource_type,
      currency,
      bill_id,
      month,
      days_in_month,
      days,
      period * daterange(month, next_month) as days_here,
      case
        when period is null then cost
        when days > 0 then metersync.share(cost, before, through, total, greatest(scale(cost), 2))
      end as share
    from spread
  ),
  monthly as (
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
    from shares
    group by company_id, meter_id, month, currency, site_id, datasource_type, days_in_month
  ),
  final as (
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
    from monthly
  )
select * from final;

comment on view analytics.monthly_cost is
  'Cost of each meter by month, from bills spread over their days: a bill''s months sum to it.';
comment on column analytics.monthly_cost.meter_id is 'Meter; NULL for bills without usage.';
comment on column analytics.monthly_cost.days_in_month is 'Days in month.';
comment on column analytics.monthly_cost.days_covered is 'Days covered.';
comment on column analytics.monthly_cost.days_overlapped is
  'Days that more than one bill is for.';
comment on column analytics.monthly_cost.bills is 'Bills.';
comment on column analytics.monthly_cost.bill_ids is 'Bills.';
comment on column analytics.monthly_cost.month is 'First day; NULL for what has no dates.';
comment on column analytics.monthly_cost.cost is 'Share of the bills'' cost.';
comment on column analytics.monthly_cost.coverage is 'Billed part of the days of all its meters.';
