-- Returns an amount that views can multiply and sum; NULL where it has over a hundred digits.
-- No meter has so many before or after the point, and products of them overflow numeric.
-- One such record would make views fail for everybody; its record and column keep it.
create or replace function metersync.amount (value numeric) returns numeric language sql immutable parallel safe as $$
  select
    case
      when value between -1e100 and 1e100
        and scale(value) <= 100 then value
    end
$$;
