-- The months of all sites add up to what was billed, exactly, with what has no dates and what no
-- meter or commodity is known of. Power is a highest value and no sum.
select datasource_type, units, m.usage as months, b.usage as bills
from (
    select coalesce(datasource_type, '') as datasource_type, coalesce(units, '') as units, sum(billed_usage) as usage
    from {{ ref('site_monthly_usage') }} group by 1, 2
) as m
full join (
    select coalesce(datasource_type, '') as datasource_type, coalesce(units, '') as units, sum(signed_usage) as usage
    from {{ ref('stg_usage') }}
    where dimension not in ('power', 'apparent power', 'reactive power')
    group by 1, 2
) as b using (datasource_type, units)
where m.usage is distinct from b.usage
