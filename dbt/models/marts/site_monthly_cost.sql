select
    m.company_id,
    c.name as company,
    m.site_id,
    s.name as site,
    m.month,
    m.currency,
    m.cost,
    m.meters,
    m.coverage
from {{ source('analytics', 'monthly_cost_by_site') }} as m
left join {{ source('utility', 'companies') }} as c on c.id = m.company_id
left join {{ source('utility', 'sites') }} as s on s.id = m.site_id
