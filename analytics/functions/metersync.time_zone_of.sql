-- Proposes the time zone of an address in the United States or Canada: the zone of its state or
-- province, which precedes the postal code. For a state with several zones it is the zone of most
-- people.
create or replace function metersync.time_zone_of (address text) returns text
language sql immutable parallel safe as $$
  select zone
  from (
    values
      ('America/New_York', 'CT DC DE FL GA IN KY MA MD ME MI NC NH NJ NY OH PA RI SC VA VT WV'),
      ('America/Chicago', 'AL AR IA IL KS LA MN MO MS ND NE OK SD TN TX WI'),
      ('America/Denver', 'CO ID MT NM UT WY'), ('America/Phoenix', 'AZ'),
      ('America/Los_Angeles', 'CA NV OR WA'), ('America/Anchorage', 'AK'),
      ('Pacific/Honolulu', 'HI'), ('America/Puerto_Rico', 'PR'), ('America/Toronto', 'ON QC'),
      ('America/Winnipeg', 'MB'), ('America/Regina', 'SK'), ('America/Edmonton', 'AB'),
      ('America/Vancouver', 'BC'), ('America/Halifax', 'NB NS PE'), ('America/St_Johns', 'NL')
  ) as zones (zone, states)
  where substring(address from '\m([A-Z]{2}),? +(?:\d{5}|[A-Z]\d[A-Z] ?\d[A-Z]\d)\M')
    = any(string_to_array(states, ' '))
$$;
