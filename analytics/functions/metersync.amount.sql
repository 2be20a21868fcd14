-- An amount that views can multiply and add up: more than a hundred digits before or after the point are no meter's, and two
-- factors beyond that no numeric holds, so that one record would make views fail for everybody. Its record and its column keep it.
create or replace function metersync.amount(value numeric)
returns numeric
language sql immutable parallel safe
as $$
  select
    case
      when value between -1e100 and 1e100
        and scale(value) <= 100 then value
    end
$$;
