select
    u.company_id,
    c.name as company,
    u.site_id,
    s.name as site,
    u.month,
    u.datasource_type,
    u.units,
    u.usage,
    u.billed_usage,
    u.peak_demand,
    u.peak_demand_units,
    u.meters,
    u.coverage,
    u.is_complete
from {{ source('analytics', 'monthly_usage_by_site') }} as u
left join {{ source('utility', 'companies') }} as c on c.id = u.company_id
left join {{ source('utility', 'sites') }} as s on s.id = u.site_id
