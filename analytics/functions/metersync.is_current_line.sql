-- Whether a line of a bill belongs to the bill's own period. Other lines are not part of its cost.
create or replace function metersync.is_current_line (billing_period text) returns boolean
language sql immutable parallel safe as $$
  select coalesce(nullif(billing_period, ''), 'CURRENT') = 'CURRENT'
$$;
