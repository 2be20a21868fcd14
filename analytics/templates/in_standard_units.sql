-- Rows with their unit and its standard unit. A factor for the commodity takes precedence over the
-- common factor, and an exact name over another spelling. Without a factor, the unit is its own
-- standard unit. Arguments: rows, the step to read; commodity, its column of that name.
select
  r.*,
  coalesce(own.units, common.units, other.unit ->> 'units', btrim(r.usage_units)) as units,
  coalesce(own.factor, common.factor, (other.unit ->> 'factor')::numeric, 1) as factor,
  coalesce(
    own.standard_units, common.standard_units, other.unit ->> 'standard_units', btrim(r.usage_units)
  ) as standard_units,
  coalesce(own.dimension, common.dimension, other.unit ->> 'dimension', 'unknown') as dimension
from {{rows}} r
  left join ops.unit_factors own on own.units = r.usage_units
    and own.datasource_type = r.{{commodity}}
  left join ops.unit_factors common on common.units = r.usage_units
    and common.datasource_type = ''
  cross join lateral (
    select case
      when own.units is null and common.units is null
        then (select metersync.unit_spellings()) -> metersync.unit_key(r.usage_units)
    end as units
    offset 0
  ) spelled
  cross join lateral (
    select coalesce(spelled.units -> r.{{commodity}}, spelled.units -> '') as unit
  ) other
