-- Returns the last day of a period: see first_day.
create or replace function metersync.last_day (start_date date, end_date date) returns date
language sql immutable parallel safe as $$
  select case
    when least(start_date, end_date) >= '0001-01-01'
      and greatest(start_date, end_date) <= '9999-12-31'
      then greatest(start_date, end_date)
  end
$$;
