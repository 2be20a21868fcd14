-- Counts the days in a multirange of dates.
-- Strict, as most callers pass NULL: NULL costs no call.
create or replace function metersync.days_in (days datemultirange) returns integer language sql immutable parallel safe strict as $$
  select coalesce(sum(upper(part) - lower(part))::integer, 0)
  from unnest(days) as part
$$;
