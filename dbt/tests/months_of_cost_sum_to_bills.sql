-- The months of all sites add up to the bills, to the cent; bills without a currency are compared,
-- too.
select currency, m.cost as months, b.cost as bills
from (select coalesce(currency, '') as currency, sum(cost) as cost from {{ ref('site_monthly_cost') }} group by 1) as m
full join (select coalesce(currency, '') as currency, sum(cost) as cost from {{ ref('stg_bills') }} group by 1) as b using (currency)
where m.cost is distinct from b.cost
