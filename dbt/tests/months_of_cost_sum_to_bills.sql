-- The months of all meters must add up to the bills, to the cent. Bills without a currency are
-- compared, too.
with months as (
    select coalesce(currency, '') as currency, sum(cost) as cost
    from {{ source('analytics', 'monthly_cost') }}
    group by 1
), bills as (
    select coalesce(currency, '') as currency, sum(cost) as cost
    from {{ ref('stg_bills') }}
    group by 1
)
select currency, months.cost as months, bills.cost as bills
from months
full join bills using (currency)
where months.cost is distinct from bills.cost
