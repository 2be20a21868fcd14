-- Returns the sign of an amount in sums: exported or excluded usage is subtracted, and generation
-- is separate. An amount that is negative already is added.
create or replace function metersync.usage_sign (
  net_metering_type text, usage numeric, is_excluded boolean
) returns integer
language sql immutable parallel safe as $$
  select case
    when net_metering_type = 'GENERATION' then 0
    when usage < 0 then 1
    when (net_metering_type is not distinct from 'EXPORT') <> (is_excluded is true) then -1
    else 1
  end
$$;
