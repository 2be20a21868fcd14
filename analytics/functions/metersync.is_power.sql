-- Whether a dimension is a rate, such as kW. Its amounts are demands, which are not added up.
create or replace function metersync.is_power (dimension text) returns boolean
language sql immutable parallel safe as $$
  select dimension in ('power', 'apparent power', 'reactive power')
$$;
