select metersync.comment_columns(view, '{
  "month": "First day of the month; NULL for usage without dates.",
  "units": "Standard unit of the amounts.",
  "billed_usage": "Sum over meters: adds up to the bills exactly.",
  "usage": "Sum over meters, each day counted once; NULL when no meter has a day billed.",
  "generated_usage": "Generation, which usage leaves out.",
  "peak_demand": "Highest demand of any one meter that tells it in peak_demand_units: meters peak at different times, so it is no sum.",
  "meters": "Meters that have bills before and after, or in, the month; records without a meter count as one for each account.",
  "meters_complete": "Those with each day billed once.",
  "coverage": "Days covered of the days of all its meters.",
  "days_overlapped": "Days that more than one bill is for, over all meters.",
  "estimated_days": "Days whose bill is estimated, over all meters.",
  "is_complete": "Whether all meters are complete.",
  "peak_demand_units": "Standard unit of peak_demand: kW where any meter has it, else kVA, else kVAR; NULL where the service does not tell it."
}')
from unnest(
  array['analytics.monthly_usage_by_site', 'analytics.monthly_usage_by_company']::regclass[]
) as view;

select metersync.comment_columns(view, '{
  "month": "First day of the month; NULL for bills without any date.",
  "cost": "Share of the cost of bills, in currency.",
  "coverage": "Days covered of the days of the month, over all its meters."
}')
from unnest(
  array[
    'analytics.monthly_cost',
    'analytics.monthly_cost_by_site',
    'analytics.monthly_cost_by_company'
  ]::regclass[]
) as view;
