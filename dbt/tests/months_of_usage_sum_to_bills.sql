-- The months of all meters must add up exactly to the billed usage, including usage without dates,
-- without a known meter and without a known commodity. Power is left out, because it is a highest
-- value and not a sum.
with months as (
    select
        coalesce(datasource_type, '') as datasource_type,
        coalesce(units, '') as units,
        sum(billed_usage) as usage
    from {{ source('analytics', 'monthly_usage') }}
    group by 1, 2
), bills as (
    select
        coalesce(datasource_type, '') as datasource_type,
        coalesce(units, '') as units,
        sum(signed_usage) as usage
    from {{ ref('stg_usage') }}
    where dimension not in ('power', 'apparent power', 'reactive power')
    group by 1, 2
)
select datasource_type, units, months.usage as months, bills.usage as bills
from months
full join bills using (datasource_type, units)
where months.usage is distinct from bills.usage
