-- Bills that count. service_end_date is the last day as it was sent. If the next bill starts on
-- that day, last_day is the day before.
select
    bill_id,
    company_id,
    company,
    site_id,
    site,
    account_number,
    provider,
    invoice_id,
    first_day,
    last_day,
    service_end_date,
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
