-- The first and the last day that dates of the service mean, half-open: swapped when they are inverted, one day when
-- one is missing. A period that no bill has (ten years) is not spread: it counts on its last day. A year of more than four digits, or
-- before the first, is a slip, and what is far beyond them no timestamp holds: such dates are none.
create or replace function metersync.first_day(start_date date, end_date date)
returns date
language sql immutable parallel safe
as $$
  select
    case
      when least(start_date, end_date) < '0001-01-01'
        or greatest(start_date, end_date) > '9999-12-31' then null
      when abs(end_date - start_date) > 3660 then greatest(start_date, end_date)
      else least(start_date, end_date)
    end
$$;
