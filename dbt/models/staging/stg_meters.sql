-- Meters that are not deleted, with the names and numbers by which people know them.
select
    meter_id,
    meter_number,
    company_id,
    company,
    site_id,
    site,
    address,
    provider,
    account_number,
    commodity as datasource_type,
    first_day,
    last_day
from {{ source('analytics', 'meters') }}
