-- Classifies the status of a connection.
create or replace function analytics.status_class (status text) returns text
language sql immutable parallel safe as $$
  select case
    when status = 'CONNECTED' then 'healthy'
    when status in ('PENDING', 'UNDER_INVESTIGATION') then 'waiting'
    when status in (
      'MFA_TOKEN_EXPIRED', 'PASSWORD_INCORRECT', 'INCORRECT_PASSWORD', 'NEW_PASSWORD_NEEDED',
      'ADDITIONAL_CREDENTIALS_NEEDED'
    )
      then 'needs_customer'
    when status = 'COMPANY_INACTIVE' then 'inactive'
    when status in ('WEBSITE_DOWN', 'URL_INACCESSIBLE', 'NO_ACCOUNTS_FOUND', 'OTHER_ERROR')
      then 'provider_problem'
    else 'unknown'
  end
$$;
comment on function analytics.status_class is
  'healthy, waiting, needs_customer, provider_problem, inactive; unknown for a status that is not '
  'documented.';
