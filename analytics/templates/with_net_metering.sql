-- Rows with the net metering type of their meter: the type of its newest usage record, or else the
-- meter's own type. The type is looked up once for each meter. Of records that were created at the
-- same time, a record without a type is chosen, or else IMPORT before GENERATION before EXPORT.
-- Arguments: rows, the step to read.
with placed as (
  select *, row_number() over (partition by company_id, meter_id) as place
  from {{rows}}
), looked_up as (
  select
    *,
    case
      when place = 1 then coalesce(
        (
          select u.net_metering_type
          from analytics.usage u
          where u.meter_id = p.meter_id
          order by u.created desc nulls last, u.net_metering_type desc
          limit 1
        ),
        (select m.raw ->> 'netMeteringType' from utility.meters m where m.id = p.meter_id)
      )
    end as net_metering_of_first
  from placed p
)
select
  *,
  max(net_metering_of_first) over (partition by company_id, meter_id) as net_metering_type
from looked_up
