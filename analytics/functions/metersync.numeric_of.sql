-- Analysts call it through the views and may not look into schema metersync: names are resolved here (begin atomic).
-- A number, be it one or the text of one.
create or replace function metersync.numeric_of(value jsonb)
returns numeric
language sql immutable parallel safe
begin atomic
  select
    case jsonb_typeof(value)
      when 'number' then (value #>> '{}')::numeric
      when 'string' then metersync.number_of(value #>> '{}')
    end;
end;
