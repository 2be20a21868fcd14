-- One row for each company, which shows how far its numbers can be trusted.
with meters as (
    select company_id, count(*) as meters from {{ ref('stg_meters') }} group by 1
),

bills as (
    select
        company_id,
        count(*) as bills,
        count(*) filter (where is_estimated) as bills_estimated,
        count(*) filter (where is_flagged) as bills_flagged,
        max(last_day) as billed_until
    from {{ ref('stg_bills') }} group by 1
),

issues as (
    select
        company_id,
        count(*) filter (where severity = 'error' and acknowledged_at is null) as errors,
        count(*) filter (where severity = 'warning' and acknowledged_at is null) as warnings,
        count(acknowledged_at) as issues_acknowledged
    from {{ source('ops', 'data_issues') }}
    where closed_at is null
    group by 1
),

connections as (
    select company_id, count(*) as connections_needing_attention
    from {{ source('analytics', 'connections_needing_attention') }} group by 1
)

select
    c.id as company_id,
    c.name as company,
    coalesce(m.meters, 0) as meters,
    coalesce(b.bills, 0) as bills,
    coalesce(b.bills_estimated, 0) as bills_estimated,
    coalesce(b.bills_flagged, 0) as bills_flagged,
    b.billed_until,
    coalesce(i.errors, 0) as errors,
    coalesce(i.warnings, 0) as warnings,
    coalesce(i.issues_acknowledged, 0) as issues_acknowledged,
    coalesce(k.connections_needing_attention, 0) as connections_needing_attention
from {{ source('utility', 'companies') }} as c
left join meters as m on m.company_id = c.id
left join bills as b on b.company_id = c.id
left join issues as i on i.company_id = c.id
left join connections as k on k.company_id = c.id
where c.deleted_at is null
