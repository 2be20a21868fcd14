-- Returns the commodity of a line of a bill; NULL for fees and taxes, which have none. The type of
-- the charge takes precedence, because other lines may name a time of use.
create or replace function metersync.line_commodity (
  electricity_charge_type text, gas_charge_type text, is_demand boolean, time_of_use text
) returns text
language sql immutable parallel safe as $$
  select case
    when electricity_charge_type <> '' then 'ELECTRICITY'
    when gas_charge_type <> '' then 'GAS'
    when is_demand or time_of_use <> '' then 'ELECTRICITY'
  end
$$;
