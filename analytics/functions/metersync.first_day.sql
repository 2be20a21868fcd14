-- first_day and last_day turn two dates of the service into a half-open period. Inverted dates are
-- swapped. If one of the dates is missing, the period is one day. A period longer than ten years is
-- not spread: it counts on its last day. Dates in a year of more than four digits, or before the
-- year 1, are mistakes and become NULL. Dates far beyond these years do not fit into a timestamp.
create or replace function metersync.first_day (start_date date, end_date date) returns date
language sql immutable parallel safe as $$
  select case
    when least(start_date, end_date) < '0001-01-01' or greatest(start_date, end_date) > '9999-12-31'
      then null
    when abs(end_date - start_date) > 3660 then greatest(start_date, end_date)
    else least(start_date, end_date)
  end
$$;
