-- Whether a connection with a status needs attention.
create or replace function metersync.needs_attention (status text) returns boolean
language sql immutable parallel safe as $$
  select status <> 'PENDING' and analytics.status_class(status) <> 'healthy'
$$;
comment on function metersync.needs_attention is
  'Whether a connection of a status collects nothing, and is not only about to begin.';
