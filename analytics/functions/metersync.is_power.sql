-- Whether a dimension is a rate, such as kW: its amounts are demands, which no sum has.
create or replace function metersync.is_power (dimension text) returns boolean language sql immutable parallel safe as $$
  select dimension in ('power', 'apparent power', 'reactive power')
$$;
