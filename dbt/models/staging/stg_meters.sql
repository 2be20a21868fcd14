-- Meters that live, with the names of where they are.
select
    m.id as meter_id,
    m.company_id,
    c.name as company,
    m.site_id,
    s.name as site,
    m.datasource_type
from {{ source('utility', 'meters') }} as m
left join {{ source('utility', 'sites') }} as s on s.id = m.site_id
left join {{ source('utility', 'companies') }} as c on c.id = m.company_id
where m.deleted_at is null
