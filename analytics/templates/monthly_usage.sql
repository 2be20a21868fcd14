-- Usage by calendar month, computed from the bills. Usage without dates has the month NULL. Months
-- between two bills have a row with NULL, unless the bills are ten years apart, because then one of
-- the dates is wrong.
with usage_months as (
  select u.*, m.month, m.next_month
  from {{usage}} u
    left join lateral (
      select first::date as month, (first + interval '1 month')::date as next_month
      from generate_series(
        date_trunc('month', lower(u.period)::timestamp),
        greatest(
          upper(u.period) - 1,
          case
            when u.next_start - upper(u.period) <= 3660
              then (date_trunc('month', u.next_start::timestamp) - interval '1 day')::date
          end
        ),
        interval '1 month'
      ) as first
      offset 0
    ) m on true
), spread as (
  select u.*, d.*
  from usage_months u
    -- Computed once for each row, and not wherever it is used.
    cross join lateral (
      select
        next_month - month as days_in_month,
        month - lower(period) as before,
        least(next_month, upper(period)) - lower(period) as through,
        greatest(0, least(next_month, upper(period)) - greatest(month, lower(period))) as days,
        daterange(month, next_month) as dates,
        greatest(scale(standard_usage), 6) as places,
        metersync.is_power(dimension) as is_power
      offset 0
    ) d
), shares as (
  select
    company_id, site_id, meter_id, datasource_type, bill_id, usage_units, units, standard_units,
    is_estimated, unmetered_source, month, days_in_month, days, is_power,
    case
      when days = 0 and month is not null then null
      when is_power then greatest(standard_usage, billed_demand * factor)
      else billed_demand
    end as billed_demand,
    -- The rank of the unit comes first (kW before kVA before kVAR), because amounts in different
    -- units cannot be compared.
    case
      when days = 0 and month is not null then null
      when demand_kw is not null then array[3, demand_kw]
      when demand_kva is not null then array[2, demand_kva]
      when demand_kvar is not null then array[1, demand_kvar]
    end as metered_demand,
    case
      when is_power then null
      when month is null then signed_usage
      when days > 0 then metersync.share(signed_usage, before, through, period_days, places)
    end as share,
    -- The same in the bill's unit, which is computed only where it is not the standard unit.
    case
      when is_power then null
      when factor = 1 then null
      when month is null then usage * sign
      when days > 0
        then metersync.share(usage * sign, before, through, period_days, greatest(scale(usage), 6))
    end as original_share,
    case
      when sign <> 0 or is_power then null
      when month is null then standard_usage
      when days > 0 then metersync.share(
        standard_usage, before, through, period_days, greatest(scale(standard_usage), 6)
      )
    end as generated,
    case when may_overlap then datemultirange(period * dates) end as days_here,
    case when may_overlap then datemultirange(period * dates) - counted_days end as overlapped_days,
    case
      when may_overlap and days > 0 and not is_power
        then round(
          signed_usage * metersync.days_in(counted_days * datemultirange(dates)) / period_days,
          places
        )
    end as counted_share
  from spread
), monthly as (
  select
    company_id, site_id, meter_id, datasource_type, month, standard_units, days_in_month,
    unmetered_source,
    sum(share) as billed_usage,
    sum(share - counted_share) filter (where overlapped_days is not null) as uncounted_usage,
    coalesce(sum(original_share), sum(share)) as original_usage,
    min(usage_units) as original_units,
    min(units) as first_units,
    max(units) as last_units,
    sum(generated) as generated_usage,
    bool_or(is_power) as is_power,
    max(billed_demand) as billed_demand,
    max(metered_demand) as metered_demand,
    (
      coalesce(sum(days) filter (where overlapped_days is null), 0) + coalesce(
        metersync.days_in(range_agg(days_here) filter (where overlapped_days is not null)),
        0
      )
    )::integer as days_covered,
    coalesce(
      metersync.days_in(range_agg(overlapped_days) filter (where overlapped_days is not null)),
      0
    ) as days_overlapped,
    (
      coalesce(sum(days) filter (where overlapped_days is null and is_estimated), 0) + coalesce(
        metersync.days_in(
          range_agg(days_here - overlapped_days) filter (
            where overlapped_days is not null
              and is_estimated
          )
        ),
        0
      )
    )::integer as estimated_days,
    array_agg(distinct bill_id) filter (
      where (days > 0 or month is null)
        and bill_id is not null
    ) as bill_ids
  from shares
  group by
    company_id, meter_id, month, standard_units, site_id, datasource_type, days_in_month,
    unmetered_source
)
select
  company_id, site_id, meter_id, datasource_type, month,
  standard_units as units,
  billed_usage,
  billed_usage - coalesce(uncounted_usage, 0) as usage,
  round(
    (billed_usage - coalesce(uncounted_usage, 0)) * days_in_month / nullif(days_covered, 0),
    6
  ) as extrapolated_usage,
  case when first_units = last_units then original_usage end as original_usage,
  case when first_units = last_units then original_units end as original_units,
  generated_usage,
  -- A demand with a unit takes precedence over a demand without a unit.
  case
    when is_power or metered_demand is null then billed_demand
    else metered_demand[2]
  end as peak_demand,
  days_in_month, days_covered,
  round(days_covered::numeric / days_in_month, 4) as coverage,
  days_overlapped, estimated_days,
  days_covered = days_in_month and days_overlapped = 0 as is_complete,
  coalesce(cardinality(bill_ids), 0) as bills,
  bill_ids,
  case
    when is_power then standard_units
    else (array['kVAR', 'kVA', 'kW'])[metered_demand[1]::integer]
  end as peak_demand_units,
  unmetered_source
from monthly
