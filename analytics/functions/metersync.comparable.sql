-- Returns a number or a name as it is compared: in upper case, without separators and leading
-- zeros, as the service compares identifiers. NULL if nothing is left.
create or replace function metersync.comparable (said text) returns text
language sql immutable parallel safe as $$
  select nullif(upper(ltrim(translate(said, E'- _,/\t', ''), '0')), '')
$$;
