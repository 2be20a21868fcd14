-- The first moment of a local day. Where the clocks skip midnight, "at time zone" gives the moment of the change, which is
-- it; where they fall back into it, the second midnight, so what the clock showed just before is taken off: a day begins at the
-- first moment whose local date it is, and after which no earlier date comes. (At 00:01 St. John's fell back to 23:01: its day
-- began with the second midnight.)
create or replace function metersync.day_start(day date, zone text)
returns timestamptz
language sql stable parallel safe
as $$
  select
    day::timestamp at time zone zone - greatest(
      interval '0',
      (day::timestamp at time zone zone - interval '1 microsecond') at time zone zone + interval '1 microsecond' - day::timestamp
    )
$$;
