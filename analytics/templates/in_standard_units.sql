-- Rows with the standard unit of their usage_units. A factor for the commodity takes precedence
-- over the common factor. Without either, the unit is its own standard unit. The factor is looked up
-- for each row: a join that expects few rows would compare each of them with every unit. Arguments:
-- rows, the step to read; commodity, its column of that name.
select
  r.*,
  coalesce(f.factor, 1) as factor,
  coalesce(f.standard_units, r.usage_units) as standard_units,
  coalesce(f.dimension, 'unknown') as dimension
from
  {{rows}} r
  left join lateral (
    select
      factor,
      standard_units,
      dimension
    from
      ops.unit_factors
    where
      units = r.usage_units
      and datasource_type in (r.{{commodity}}, '')
    order by
      datasource_type = ''
    limit
      1
  ) f on true
