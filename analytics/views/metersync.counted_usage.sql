-- Every usage record that counts, on whole days. Windows are over a company's meter, so that a
-- query for one company reads no records of other companies. Only records whose days touch are
-- compared with one another. A window function costs a pass for each frame, so functions share a
-- frame where possible; lead() needs no frame. Records without a meter are grouped by account and
-- commodity (unmetered), and each group counts as a meter of its own. Documents and meters are
-- looked up by their ids, each next to its record: if the planner expects few records, a join would
-- read the documents of a company again for each record, or the meters of all companies. A document
-- is unpacked only if its demand is asked for, once for each record. The account of the few records
-- without a meter is looked up separately.
create or replace view metersync.counted_usage as
with records as (
  select
    u.id as usage_id,
    u.document_id as bill_id,
    coalesce(u.document_id, u.id) as bill_key,
    coalesce(d.created, u.created) as billed_at,
    u.company_id,
    coalesce(m.site_id, d.site_id) as site_id,
    u.meter_id,
    case
      when u.meter_id is null then array[
        u.raw ->> 'datasourceType',
        coalesce(
          (
            select b.account_number
            from utility.documents d
              cross join analytics.read_bill(d.raw) b
            where d.id = u.document_id
          ),
          u.document_id::text, u.id::text
        )
      ]
    end as unmetered,
    coalesce(m.datasource_type, u.raw ->> 'datasourceType') as own_commodity,
    u.start_date, u.end_date,
    metersync.first_day(u.start_date, u.end_date) as first_day,
    metersync.last_day(u.start_date, u.end_date) as last_day,
    metersync.amount(u.usage) as usage,
    u.usage_units, u.is_estimated,
    u.exclusion as is_excluded,
    coalesce(u.net_metering_type, m.net_metering_type) as net_metering_type,
    u.billed_demand, d.demand_meters, u.raw, u.created, u.updated, u.api_version
  from utility.usage_data u
    left join lateral (
      select
        created, site_id,
        -- Bills of older versions have no demand meters.
        case when api_version not in ('v2', 'v2.1') then raw -> 'demandMeters' end as demand_meters,
        case
          when deleted_at is not null then true
          when revised_document_id is null then false
          -- Most links lead to a document that counts. Then the chain need not be followed.
          else exists (
            select
            from utility.documents n
            where n.id = documents.revised_document_id
              and n.revised_document_id is null
              and n.deleted_at is null
          )
            or analytics.superseded_by(id) is not null
        end as is_gone
      from utility.documents
      where id = u.document_id
      offset 0
    ) d on true
    left join lateral (
      select site_id, datasource_type, raw ->> 'netMeteringType' as net_metering_type
      from utility.meters
      where id = u.meter_id
      offset 0
    ) m on true
  where u.deleted_at is null
    and d.is_gone is not true
), standardized as ({{in_standard_units rows="records" commodity="own_commodity"}}),
described as (
  select
    *,
    metersync.usage_sign(net_metering_type, usage, is_excluded) as sign,
    case
      when start_date is null or end_date is null or first_day is null then 'missing'
      when end_date < start_date then 'inverted'
      when end_date = start_date then 'end_missing'
      when end_date > current_date then 'future'
      when end_date - start_date >= 65 then 'too_long'
      else 'ok'
    end as date_quality,
    -- The highest demand in kW, kVA and kVAR. A demand that names no usage records counts for
    -- each record of electricity. Contracted or allotted capacity was not measured, so it is not
    -- a peak.
    case
      when demand_meters -> 0 is not null then (
        select array[
          max(measured.demand) filter (where measured.dimension = 'power'),
          max(measured.demand) filter (where measured.dimension = 'apparent power'),
          max(measured.demand) filter (where measured.dimension = 'reactive power')
        ]
        from (
          select
            coalesce(f.dimension, other.unit ->> 'dimension') as dimension,
            metersync.number_of(d ->> 'demandUsage')
              * coalesce(f.factor, (other.unit ->> 'factor')::numeric) as demand
          from jsonb_array_elements(metersync.elements(demand_meters)) d
            left join ops.unit_factors f on f.units = d ->> 'demandUsageUnits'
              and f.datasource_type = ''
            cross join lateral (
              select case
                when f.units is null then (select metersync.unit_spellings()) -> metersync.unit_key(
                  d ->> 'demandUsageUnits'
                ) -> ''
              end as unit
            ) other
          where case
            when d -> 'usageDataIds' -> 0 is null then own_commodity = 'ELECTRICITY'
            else d -> 'usageDataIds' ? usage_id::text
          end
            and upper(coalesce(d ->> 'demandType', ''))
              not in ('CONTRACT', 'UCAP', 'ICAP', 'TRANSMISSION')
        ) measured
      )
    end as demand
  from standardized
), neighboured as (
  select
    *,
    min(first_day) over (meter groups between 1 following and 1 following) as next_start,
    coalesce(
      lead(first_day) over (meter groups between 1 following and 1 following),
      'infinity'
    ) as next_first,
    coalesce(
      max(last_day) over (meter rows between unbounded preceding and 1 preceding),
      '-infinity'
    ) as last_before
  from described
  window meter as (partition by company_id, meter_id, unmetered, dimension order by first_day)
), bounded as (
  select
    *,
    last_day + 1
      - coalesce(last_day > first_day and last_day = next_start, false)::integer as until_day,
    case
      when first_day is null then 'no_dates'
      when last_day > first_day and last_day = next_start then 'shared_day_to_next'
      when end_date < start_date then 'dates_swapped'
      when first_day = last_day then 'one_day'
      else 'end_inclusive'
    end as boundary_rule,
    coalesce(next_first <= last_day or last_before >= first_day, true) as may_overlap
  from neighboured
), overlapped as (
  select
    *,
    range_agg(daterange(first_day, until_day)) filter (where may_overlap and first_day is not null)
      over (
        partition by company_id, meter_id, unmetered, dimension
        order by
          billed_at desc nulls last,
          bill_key desc groups between unbounded preceding and 1 preceding
    ) as newer_days
  from bounded
)
select
  usage_id, bill_id, company_id, site_id, meter_id,
  own_commodity as datasource_type,
  start_date, end_date,
  case when first_day is not null then daterange(first_day, until_day) end as period,
  until_day - first_day as period_days,
  boundary_rule, date_quality,
  case
    when first_day is null then null
    when newer_days is null then datemultirange(daterange(first_day, until_day))
    else datemultirange(daterange(first_day, until_day)) - newer_days
  end as counted_days,
  may_overlap, next_start, usage, usage_units,
  metersync.in_standard_units(usage, factor) as standard_usage,
  standard_units, dimension, factor, sign,
  metersync.in_standard_units(usage, factor) * sign as signed_usage,
  is_estimated, is_excluded, net_metering_type, billed_demand,
  raw ->> 'electricityType' as electricity_type,
  raw ->> 'timeOfUse' as time_of_use,
  raw ->> 'tariff' as tariff,
  raw ->> 'supplierName' as supplier,
  raw ->> 'utilityName' as utility,
  created, updated, api_version,
  array_to_string(unmetered, ' ') as unmetered_source,
  demand[1] as demand_kw,
  demand[2] as demand_kva,
  demand[3] as demand_kvar,
  own_commodity as commodity,
  units,
  raw ->> 'utilityName' as provider,
  first_day,
  until_day - 1 as last_day
from overlapped;
comment on view metersync.counted_usage is
  'The rows of analytics.usage, without names and in any order: what statements of metersync read.';
