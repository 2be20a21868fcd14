-- Converts an amount to the standard unit. Some factors, such as the factor of a cubic foot, have
-- many digits. Therefore the result is rounded to a millionth of the smaller of the two units.
create or replace function metersync.in_standard_units (amount numeric, factor numeric)
returns numeric
language sql immutable parallel safe as $$
  select case
    when factor = 1 then amount
    else round(
      amount * factor,
      least(
        scale(amount) + scale(factor),
        greatest(6, scale(amount))
          + case when factor > 0 and factor < 1 then ceil(-log(factor::float8))::integer else 0 end
      )
    )
  end
$$;
