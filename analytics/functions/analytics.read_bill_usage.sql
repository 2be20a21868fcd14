-- Sums the usage on a document; NULL if its records have several units.
create or replace function analytics.read_bill_usage (raw jsonb)
returns table (usage numeric, usage_units text)
language sql stable parallel safe
begin atomic
  select
    case
      when min(metersync.unit_key(u ->> 'usageUnits'))
        is not distinct from max(metersync.unit_key(u ->> 'usageUnits'))
        then sum(metersync.number_of(u ->> 'usage'))
    end,
    case
      when min(metersync.unit_key(u ->> 'usageUnits'))
        is not distinct from max(metersync.unit_key(u ->> 'usageUnits'))
        then min(u ->> 'usageUnits')
    end
  from jsonb_array_elements(metersync.elements(raw -> 'usageData')) as u;
end;
comment on function analytics.read_bill_usage is
  'The usage of a document''s records, if all of it is in one unit.';
