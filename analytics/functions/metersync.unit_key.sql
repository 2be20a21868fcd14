-- Returns the form of a unit's name that all its spellings share: neither case nor blanks matter.
-- It is computed for each reading, therefore it uses the cheap rules of the collation "C".
create or replace function metersync.unit_key (units text) returns text
language sql immutable parallel safe as $$
  select lower(replace(units, ' ', '') collate "C")
$$;
