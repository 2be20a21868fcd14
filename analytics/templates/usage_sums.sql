-- The months of a company's meters added up. Peaks of demand are not compared across units: kW go
-- before kVA before kVAR.
-- Arguments: by, whose months they are; more, further columns.
select
  {{by}},
  datasource_type,
  month,
  units,
  sum(billed_usage) as billed_usage,
  sum(usage) as usage,
  sum(generated_usage) as generated_usage,
  coalesce(
    max(peak_demand) filter (
      where
        peak_demand_units = 'kW'
    ),
    max(peak_demand) filter (
      where
        peak_demand_units = 'kVA'
    ),
    max(peak_demand) filter (
      where
        peak_demand_units = 'kVAR'
    ),
    max(peak_demand)
  ) as peak_demand {{more}},
  count(*)::integer as meters,
  (
    count(*) filter (
      where
        is_complete
    )
  )::integer as meters_complete,
  round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage,
  sum(days_overlapped)::integer as days_overlapped,
  sum(estimated_days)::integer as estimated_days,
  bool_and(is_complete) as is_complete,
  case
    when bool_or(peak_demand_units = 'kW') then 'kW'
    else min(peak_demand_units)
  end as peak_demand_units
from
  analytics.monthly_usage
group by
  {{by}},
  datasource_type,
  month,
  units
