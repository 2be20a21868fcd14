create or replace function metersync.customer_must_act (status text) returns boolean
language sql immutable parallel safe as $$
  select analytics.status_class(status) in ('needs_customer', 'inactive')
    or status = 'NO_ACCOUNTS_FOUND'
$$;
comment on function metersync.customer_must_act is
  'Whether a connection of a status stays so until a customer acts.';
