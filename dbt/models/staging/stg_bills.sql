-- Bills that count, with their period half-open and its days as two columns: not every tool knows
-- ranges.
select
    bill_id,
    company_id,
    site_id,
    account_number,
    provider,
    invoice_id,
    lower(period) as period_start,
    upper(period) as period_end,
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
