-- Bills that count, with the first and last day of their period as columns: not every tool knows
-- ranges. A day that the next bill starts on is not the last day: service_end_date is what was sent.
select
    bill_id,
    company_id,
    site_id,
    account_number,
    provider,
    invoice_id,
    lower(period) as first_day,
    upper(period) - 1 as last_day,
    period_end as service_end_date,
    period_days,
    boundary_rule,
    bill_date,
    due_date,
    currency,
    cost,
    tax_charges,
    coalesce(is_estimated, false) as is_estimated,
    coalesce(is_flagged, false) as is_flagged,
    created,
    updated
from {{ source('analytics', 'bills') }}
