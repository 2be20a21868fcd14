-- Returns the number of the account of a meter: its first identifier, in alphabetical order, that
-- is called ACCOUNT.
create or replace function metersync.account_number (raw jsonb) returns text
language sql immutable parallel safe
begin atomic
  select min(identifier ->> 'value')
  from jsonb_array_elements(metersync.elements(raw -> 'identifiers')) as i (identifier)
  where identifier ->> 'name' = 'ACCOUNT'
    and identifier ->> 'value' <> '';
end;
