-- Returns the number of a meter at its utility: the first identifier that is called METER, or else
-- the first identifier. Analysts call it through views and cannot use schema metersync.
create or replace function metersync.meter_number (raw jsonb) returns text
language sql immutable parallel safe
begin atomic
  select identifier ->> 'value'
  from jsonb_array_elements(
    metersync.elements(raw -> 'identifiers')
  ) with ordinality as i (identifier, place)
  where identifier ->> 'value' <> ''
  order by identifier ->> 'name' = 'METER' is not true, place
  limit 1;
end;
