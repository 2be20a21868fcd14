-- Reads a JSON number, or a text that is a number. Analysts call it through views and may not use
-- schema metersync, so its names are resolved when it is created (begin atomic).
create or replace function metersync.numeric_of (value jsonb) returns numeric
language sql immutable parallel safe
begin atomic
  select case jsonb_typeof(value)
    when 'number' then (value #>> '{}')::numeric
    when 'string' then metersync.number_of(value #>> '{}')
  end;
end;
