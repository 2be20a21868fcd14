-- The service tries again by itself for a week. If the beginning of a status is not known, the
-- status counts as older, as in the check unhealthy_connection.
create or replace function analytics.what_to_do (status text, since timestamptz) returns text
language sql stable parallel safe as $$
  select case status
    when 'MFA_TOKEN_EXPIRED'
      then 'upload the documents, or disable multi-factor authentication on the provider''s portal'
    when 'PASSWORD_INCORRECT' then 'update the password of the connection'
    when 'INCORRECT_PASSWORD' then 'update the password of the connection'
    when 'NEW_PASSWORD_NEEDED'
      then 'set a new password on the provider''s portal, then update it on the connection'
    when 'ADDITIONAL_CREDENTIALS_NEEDED' then 'add the credentials that the provider asks for'
    when 'COMPANY_INACTIVE' then 'have the company activated again'
    when 'NO_ACCOUNTS_FOUND' then 'look whether the login has accounts on the provider''s portal'
    else case
      when since > now() - interval '7 days'
        then 'wait a week, as the service tries again; then ask the service'
      else 'ask the service'
    end
  end
$$;
comment on function analytics.what_to_do (text, timestamptz) is
  'What a person has to do now about a connection that has had a status since a time.';

create or replace function analytics.what_to_do (status text) returns text
language sql stable parallel safe as $$
  select analytics.what_to_do(status, now())
$$;
comment on function analytics.what_to_do (text) is
  'What a person has to do about a connection whose status begins now.';
