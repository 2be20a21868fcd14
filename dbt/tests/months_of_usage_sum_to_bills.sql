-- The months of all sites add up to what was billed, exactly. Power is a highest value and no sum.
select datasource_type, units, m.usage as months, b.usage as bills
from (
    select datasource_type, units, sum(billed_usage) as usage from {{ ref('site_monthly_usage') }} group by 1, 2
) as m
full join (
    select datasource_type, units, sum(signed_usage) as usage from {{ ref('stg_usage') }}
    where period_start is not null and dimension not in ('power', 'apparent power', 'reactive power')
    group by 1, 2
) as b using (datasource_type, units)
where m.usage is distinct from b.usage
