-- Returns the first moment whose local date is the day, and after which no earlier date comes.
-- Where clocks skip midnight, "at time zone" gives that moment: the change itself.
-- Where clocks fall back into it, "at time zone" gives the second midnight.
-- Then the time that the clock showed just before is subtracted.
-- St. John's fell back from 00:01 to 23:01: its day began with the second midnight.
create or replace function metersync.day_start (day date, zone text) returns timestamptz language sql stable parallel safe as $$
  select
    day::timestamp at time zone zone - greatest(
      interval '0',
      (day::timestamp at time zone zone - interval '1 microsecond') at time zone zone
        + interval '1 microsecond'
        - day::timestamp
    )
$$;
