-- Usage that counts, in standard units. Sums add up signed_usage.
select
    usage_id,
    bill_id,
    company_id,
    company,
    site_id,
    site,
    meter_id,
    datasource_type,
    first_day,
    last_day,
    end_date as service_end_date,
    period_days,
    date_quality,
    dimension,
    standard_units as units,
    standard_usage as usage,
    signed_usage,
    billed_demand,
    coalesce(is_estimated, false) as is_estimated,
    coalesce(is_excluded, false) as is_excluded,
    net_metering_type
from {{ source('analytics', 'usage') }}
