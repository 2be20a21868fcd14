-- Returns the highest demand of a usage record on a document of v2.2: kW, kVA and kVAR, each NULL
-- if the document has none. A demand that names no usage counts for each record of electricity.
-- Contracted or allotted capacity was not measured, so it is not a peak.
create or replace function analytics.read_demand (raw jsonb, usage_id uuid, is_electric boolean) returns numeric[] language sql stable parallel safe
begin atomic
with
  measured as (
    select
      f.dimension,
      metersync.number_of (m ->> 'demandUsage') * f.factor as demand
    from
      jsonb_array_elements(metersync.elements (raw -> 'demandMeters')) as m
      join ops.unit_factors f on f.units = m ->> 'demandUsageUnits'
      and f.datasource_type = ''
    where
      case
        when m -> 'usageDataIds' -> 0 is null then is_electric
        else m -> 'usageDataIds' ? usage_id::text
      end
      and upper(coalesce(m ->> 'demandType', '')) not in ('CONTRACT', 'UCAP', 'ICAP', 'TRANSMISSION')
  )
select
  array[
    max(demand) filter (
      where
        dimension = 'power'
    ),
    max(demand) filter (
      where
        dimension = 'apparent power'
    ),
    max(demand) filter (
      where
        dimension = 'reactive power'
    )
  ]
from
  measured;
end;
comment on function analytics.read_demand is 'The highest demand of a usage record in its document, in kW, kVA and kVAR.';
