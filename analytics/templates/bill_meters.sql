-- Divides the cost of a bill among its meters. Demand is divided among the meters with demand: by
-- what demand meters (v2.2) report for each meter, if that is in one unit, otherwise equally,
-- because billed_demand has no unit. Lines with a quantity are divided by use in standard units:
-- lines of a commodity among the meters of this commodity, and other lines among the meters with
-- usage in the line's unit. Everything else is divided equally. The parts are scaled to the cost of
-- the bill, and add up to it exactly, because each part is the difference of two rounded running
-- sums. Lines are read only for bills with several meters, once for each bill. Arguments: usage and
-- bills, rows of metersync.counted_usage and of analytics.bills.
with usage_of_bills as (
  select
    company_id, bill_id, meter_id,
    min(site_id::text)::uuid as site_id,
    case when meter_id is not null then min(datasource_type) end as datasource_type,
    case
      when meter_id is not null and count(known_period) > 0
        then daterange(
          metersync.first_day(min(lower(known_period)), max(upper(known_period)) - 1),
          max(upper(known_period))
        )
    end as period,
    coalesce(
      bool_or(greatest(billed_demand, demand_kw, demand_kva, demand_kvar) > 0),
      false
    ) as has_demand,
    max(demand_kw) filter (where demand_kw > 0) as demand_kw,
    max(demand_kva) filter (where demand_kva > 0) as demand_kva,
    max(demand_kvar) filter (where demand_kvar > 0) as demand_kvar,
    sum(abs(standard_usage)) filter (where not metersync.is_power(dimension)) as used,
    array_agg(metersync.unit_key(usage_units)) as own_units,
    array_agg(abs(standard_usage)) as amounts,
    sum(signed_usage) filter (where not metersync.is_power(dimension)) as usage,
    min(standard_units) filter (where not metersync.is_power(dimension)) as first_units,
    max(standard_units) filter (where not metersync.is_power(dimension)) as last_units
  from {{usage}}
    cross join lateral (
      -- If the end is unknown, the service sends the start as the end. The bill's days are a
      -- better estimate.
      select case when date_quality <> 'end_missing' then period end as known_period
    ) known
  where bill_id is not null
  group by company_id, bill_id, meter_id
),
-- A union instead of a join: if the planner expects few bills, it would compute the other side of
-- a join again for each bill.
bills_and_meters as (
  select
    company_id, bill_id,
    true as is_bill,
    site_id, provider, account_number, invoice_id,
    coalesce(
      period,
      case when bill_date is not null then daterange(bill_date, bill_date + 1) end
    ) as period,
    currency, cost, cost_source,
    null::text as meter_id,
    null::uuid as site_of_meter,
    null::text as datasource_type,
    null::daterange as days,
    null::numeric as usage,
    null::text as units,
    null::record as weights
  from {{bills}}
  union all
  select
    company_id, bill_id, false, null, null, null, null, null, null, null, null, meter_id, site_id,
    datasource_type, period,
    case when first_units = last_units then usage end,
    case when first_units = last_units then first_units end,
    row (
      meter_id, datasource_type, has_demand, demand_kw, demand_kva, demand_kvar, used, own_units,
      amounts
    )
  from usage_of_bills
),
-- Usage without a meter comes after the meters, and the row of the bill last.
bills_with_meters as (
  select
    company_id, bill_id,
    (array_agg(site_id) filter (where is_bill))[1] as site_id,
    max(provider) as provider,
    max(account_number) as account_number,
    max(invoice_id) as invoice_id,
    (array_agg(period) filter (where is_bill))[1] as period,
    max(currency) as currency,
    max(cost) as cost,
    max(cost_source) as cost_source,
    count(meter_id) as places,
    array_agg(meter_id order by meter_id, is_bill) as meter_ids,
    array_agg(site_of_meter order by meter_id, is_bill) as sites,
    array_agg(datasource_type order by meter_id, is_bill) as datasource_types,
    array_agg(days order by meter_id, is_bill) as periods,
    array_agg(usage order by meter_id, is_bill) as usages,
    array_agg(units order by meter_id, is_bill) as units,
    array_agg(weights order by meter_id, is_bill) as weights
  from bills_and_meters
  group by company_id, bill_id
  having bool_or(is_bill)
)
select
  b.bill_id, b.company_id,
  coalesce(m.site_id, b.site_id) as site_id,
  b.provider, b.account_number, b.invoice_id, m.meter_id, m.datasource_type, p.period, m.usage,
  m.units, p.cost, b.currency,
  case
    when b.places = 0 then 'none'
    when b.places = 1 then 'direct'
    when d.is_by_lines then 'line_items'
    else 'equal'
  end as allocation_method,
  b.cost as bill_cost,
  b.cost_source
from bills_with_meters b
  left join lateral (
    select *
    from (
      with lines as (
        select
          i.seq,
          metersync.number_of(i.item ->> 'totalCharge') as amount,
          f.is_demand,
          i.item ->> 'quantity' is not null as is_by_use,
          metersync.line_commodity(
            i.item ->> 'electricityChargeType', i.item ->> 'gasChargeType', f.is_demand,
            i.item ->> 'electricityTimeOfUse'
          ) as datasource_type,
          metersync.unit_key(i.item ->> 'quantityUnits') as units
        from utility.documents d
          cross join jsonb_array_elements(
            metersync.elements(d.raw -> 'lineItems')
          ) with ordinality as i (item, seq)
          cross join lateral (
            select metersync.boolean_of(i.item ->> 'electricityIsDemand') as is_demand
          ) f
        where d.id = b.bill_id
          and metersync.is_current_line(i.item ->> 'billingPeriod')
      ),
      -- Demand is in the first unit in which every meter with demand has a value: kW before kVA
      -- before kVAR.
      meters as (
        select
          w.*,
          row_number() over (order by meter_id) as place,
          case
            when not has_demand then null
            when bool_and(demand_kw is not null) filter (where has_demand) over () then demand_kw
            when bool_and(demand_kva is not null) filter (where has_demand) over () then demand_kva
            when bool_and(demand_kvar is not null) filter (where has_demand) over ()
              then demand_kvar
            else 1
          end as demand
        from unnest(b.weights) as w (
          meter_id text, datasource_type text, has_demand boolean, demand_kw numeric,
          demand_kva numeric, demand_kvar numeric, used numeric, own_units text[], amounts numeric[]
        )
        where meter_id is not null
      ), line_parts as (
        select
          m.place, l.seq, l.amount,
          case
            when l.is_demand then m.demand
            when not l.is_by_use then 1
            when l.datasource_type is null then (
              select sum(u.amount)
              from unnest(m.own_units, m.amounts) as u (units, amount)
              where u.units is not distinct from l.units
            )
            when l.datasource_type = m.datasource_type then m.used
          end as part
        from (select) one
          left join lines l on true
          cross join meters m
      ), line_shares as (select *, sum(part) over (partition by seq) as parts from line_parts),
      charged as (
        select
          place,
          sum(
            amount * case when parts > 0 then coalesce(part, 0) / parts else 1.0 / b.places end
          ) as charged
        from line_shares
        group by place
      ), placed as (
        select
          *,
          sum(charged) over (order by place) as charged_through,
          sum(charged) over () as charged_total,
          bool_and(coalesce(charged >= 0, false)) over () and sum(charged) over ()
            > 0 as is_by_lines
        from charged
      ), weighed as (
        select
          place, is_by_lines,
          case when is_by_lines then charged else 1 end as weight,
          case when is_by_lines then charged_through else place end as weight_through,
          case when is_by_lines then charged_total else b.places end as weight_total
        from placed
      )
      select
        bool_and(is_by_lines) as is_by_lines,
        array_agg(
          case
            when place = b.places then b.cost
            else round(b.cost * weight_through / weight_total, greatest(scale(b.cost), 2))
          end - case
            when place = 1 then 0
            else round(
              b.cost * (weight_through - weight) / weight_total,
              greatest(scale(b.cost), 2)
            )
          end
          order by place
        ) as costs
      from weighed
    ) division
    where b.places > 1
    offset 0
  ) d on true
  cross join lateral unnest(b.meter_ids, b.sites, b.datasource_types, b.periods, b.usages, b.units)
    with ordinality as m (meter_id, site_id, datasource_type, period, usage, units, place)
  cross join lateral (
    select
      coalesce(m.period, b.period) as period,
      case when b.places > 1 then d.costs[m.place] else b.cost end as cost
  ) p
where m.place <= greatest(b.places, 1)
