-- Counts the days in a multirange of dates. It is strict because most callers pass NULL: Postgres
-- does not call a strict function for NULL.
create or replace function metersync.days_in (days datemultirange) returns integer
language sql immutable parallel safe strict as $$
  select coalesce(sum(upper(part) - lower(part))::integer, 0)
  from unnest(days) as part
$$;
