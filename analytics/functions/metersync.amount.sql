-- Returns an amount that views can multiply and sum; NULL if it has more than a hundred digits. No
-- meter has that many digits before or after the decimal point, and products of such amounts
-- overflow numeric, so that one record would make views fail for everybody. The record and its
-- column keep the amount.
create or replace function metersync.amount (value numeric) returns numeric
language sql immutable parallel safe as $$
  select case when value between -1e100 and 1e100 and scale(value) <= 100 then value end
$$;
