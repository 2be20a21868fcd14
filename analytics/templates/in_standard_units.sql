-- Rows with the standard unit of their usage_units. A factor for the commodity takes precedence
-- over the common factor. Without either, the unit is its own standard unit. Arguments: rows, the
-- step to read; commodity, its column of that name.
select
  r.*,
  coalesce(own.factor, common.factor, 1) as factor,
  coalesce(own.standard_units, common.standard_units, r.usage_units) as standard_units,
  coalesce(own.dimension, common.dimension, 'unknown') as dimension
from
  {{rows}} r
  left join ops.unit_factors own on own.units = r.usage_units
  and own.datasource_type = r.{{commodity}}
  left join ops.unit_factors common on common.units = r.usage_units
  and common.datasource_type = ''
