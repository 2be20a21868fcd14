create or replace function analytics.what_to_do(status text)
returns text
language sql immutable parallel safe
as $$
  select
    case status
      when 'MFA_TOKEN_EXPIRED' then 'upload the documents, '
        'or disable multi-factor authentication on the provider''s portal'
      when 'PASSWORD_INCORRECT' then 'update the password of the connection'
      when 'INCORRECT_PASSWORD' then 'update the password of the connection'
      when 'NEW_PASSWORD_NEEDED'
        then 'set a new password on the provider''s portal, then update it on the connection'
      when 'ADDITIONAL_CREDENTIALS_NEEDED' then 'add the credentials that the provider asks for'
      when 'COMPANY_INACTIVE' then 'have the company activated again'
      when 'NO_ACCOUNTS_FOUND' then 'look whether the login has accounts on the provider''s portal'
      else 'wait a week, as the service tries again; then ask the service'
    end
$$;

comment on function analytics.what_to_do is
  'What a person has to do about a connection of a status.';
