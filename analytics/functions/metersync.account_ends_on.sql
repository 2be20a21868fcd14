-- Returns the day from which no bill of an account of a connection is expected: the last day of an
-- account that is closed, infinity for an account that goes on, and minus infinity for an account
-- that the service does not track.
create or replace function metersync.account_ends_on (account jsonb) returns date
language sql stable parallel safe
begin atomic
  select case
    when account ->> 'trackingStatus' = 'DISABLED' then '-infinity'::date
    when account ->> 'status' = 'CUSTOMER_NOT_TRACKED' then '-infinity'::date
    -- The older field is only an alias.
    when coalesce(account ->> 'trackingStatus', 'UNSET') = 'UNSET'
      and metersync.boolean_of(account ->> 'isTracked') is false
      then '-infinity'::date
    else coalesce(metersync.date_of(account ->> 'lastServiceDate'), 'infinity'::date)
  end;
end;
