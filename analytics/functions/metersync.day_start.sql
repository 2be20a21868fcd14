-- Returns the first moment whose local date is the day, and after which no earlier date comes. If
-- clocks skip midnight, "at time zone" gives this moment: the change of the clocks. If clocks fall
-- back to midnight, "at time zone" gives the second midnight. Then the time that clocks showed just
-- before the change is subtracted, which gives the first midnight. In St. John's, clocks fell back
-- from 00:01 to 23:01, so the day began with the second midnight.
create or replace function metersync.day_start (day date, zone text) returns timestamptz
language sql stable parallel safe as $$
  select day::timestamp at time zone zone - greatest(
    interval '0',
    (day::timestamp at time zone zone - interval '1 microsecond') at time zone zone
      + interval '1 microsecond' - day::timestamp
  )
$$;
