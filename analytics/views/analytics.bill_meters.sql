-- Divides the cost of a bill among its meters. Demand is divided among meters with demand: by what
-- demand meters (v2.2) say about each, in one unit, or else equally, because billed_demand has no
-- unit. Lines with a quantity are divided by use in standard units: lines of a commodity among its
-- meters, and others among meters with usage in the line's unit. The rest is divided equally. The
-- parts are scaled to the cost of the bill, and add up to it exactly: each is the difference of two
-- rounded running sums.
create or replace view analytics.bill_meters as
with
  usage_of_bills as (
    select
      company_id,
      bill_id,
      meter_id,
      min(site_id::text)::uuid as site_id,
      case
        when meter_id is not null then min(datasource_type)
      end as datasource_type,
      case
        when meter_id is not null
        and count(known_period) > 0 then daterange (
          metersync.first_day (min(lower(known_period)), max(upper(known_period)) - 1),
          max(upper(known_period))
        )
      end as period,
      meter_id is not null
      and coalesce(bool_or(greatest(billed_demand, demand_kw, demand_kva, demand_kvar) > 0), false) as has_demand,
      max(demand_kw) filter (
        where
          demand_kw > 0
      ) as demand_kw,
      max(demand_kva) filter (
        where
          demand_kva > 0
      ) as demand_kva,
      max(demand_kvar) filter (
        where
          demand_kvar > 0
      ) as demand_kvar,
      sum(abs(standard_usage)) filter (
        where
          not metersync.is_power (dimension)
      ) as used,
      array_agg(usage_units) as own_units,
      array_agg(abs(standard_usage)) as amounts,
      sum(signed_usage) filter (
        where
          not metersync.is_power (dimension)
      ) as usage,
      min(standard_units) filter (
        where
          not metersync.is_power (dimension)
      ) as first_units,
      max(standard_units) filter (
        where
          not metersync.is_power (dimension)
      ) as last_units,
      count(meter_id) over (
        partition by
          company_id,
          bill_id
      ) as meters
    from
      analytics.usage
      cross join lateral (
        -- The start replaces an unknown end. The bill's days are a better estimate.
        select
          case
            when date_quality <> 'end_missing' then period
          end as known_period
      ) known
    where
      bill_id is not null
    group by
      company_id,
      bill_id,
      meter_id
  ),
  -- In the first unit in which each meter with demand has it: kW before kVA before kVAR.
  demanding_meters as (
    select
      *,
      case
        when not has_demand then null
        when bool_and(demand_kw is not null) filter (
          where
            has_demand
        ) over bill then demand_kw
        when bool_and(demand_kva is not null) filter (
          where
            has_demand
        ) over bill then demand_kva
        when bool_and(demand_kvar is not null) filter (
          where
            has_demand
        ) over bill then demand_kvar
        else 1
      end as demand
    from
      usage_of_bills
    window
      bill as (
        partition by
          company_id,
          bill_id
      )
  ),
  -- A union instead of a join: if the planner expects few bills, it computes the other side of a
  -- join again for each of them.
  bills_and_meters as (
    select
      company_id,
      bill_id,
      true as is_bill,
      site_id,
      provider,
      account_number,
      invoice_id,
      null::text as meter_id,
      null::text as datasource_type,
      coalesce(
        period,
        case
          when bill_date is not null then daterange (bill_date, bill_date + 1)
        end
      ) as period,
      currency,
      cost,
      cost_source,
      null::numeric as demand,
      null::numeric as used,
      null::text[] as own_units,
      null::numeric[] as amounts,
      null::numeric as usage,
      null::text as units,
      null::bigint as meters
    from
      analytics.bills
    union all
    select
      company_id,
      bill_id,
      false,
      site_id,
      null,
      null,
      null,
      meter_id,
      datasource_type,
      period,
      null,
      null,
      null,
      demand,
      used,
      own_units,
      amounts,
      case
        when first_units = last_units then usage
      end,
      case
        when first_units = last_units then first_units
      end,
      meters
    from
      demanding_meters
  ),
  joined as (
    select
      company_id,
      bill_id,
      is_bill,
      coalesce(site_id, first_value(site_id) over bill) as site_id,
      first_value(provider) over bill as provider,
      first_value(account_number) over bill as account_number,
      first_value(invoice_id) over bill as invoice_id,
      meter_id,
      datasource_type,
      coalesce(period, first_value(period) over bill) as period,
      first_value(currency) over bill as currency,
      first_value(cost) over bill as cost,
      first_value(cost_source) over bill as cost_source,
      first_value(is_bill) over bill as has_bill,
      demand,
      used,
      own_units,
      amounts,
      usage,
      units,
      meters,
      count(*) over (
        partition by
          company_id,
          bill_id
      ) as rows
    from
      bills_and_meters
    window
      bill as (
        partition by
          company_id,
          bill_id
        order by
          is_bill desc
      )
  ),
  line_parts as (
    select
      m.*,
      l.seq,
      l.amount,
      case
        when l.is_demand then m.demand
        when not l.is_by_use then 1
        when l.datasource_type is null then (
          select
            sum(u.amount)
          from
            unnest(m.own_units, m.amounts) as u (units, amount)
          where
            u.units is not distinct from l.units
        )
        when l.datasource_type = m.datasource_type then m.used
      end as part
    from
      joined m
      -- Documents are read only for bills with several meters. For others there is nothing to
      -- divide.
      left join lateral (
        select
          i.seq,
          metersync.number_of (i.item ->> 'totalCharge') as amount,
          f.is_demand,
          i.item ->> 'quantity' is not null as is_by_use,
          metersync.line_commodity (
            i.item ->> 'electricityChargeType',
            i.item ->> 'gasChargeType',
            f.is_demand,
            i.item ->> 'electricityTimeOfUse'
          ) as datasource_type,
          i.item ->> 'quantityUnits' as units
        from
          utility.documents d
          cross join jsonb_array_elements(metersync.elements (d.raw -> 'lineItems')) with ordinality as i (item, seq)
          cross join lateral (
            select
              metersync.boolean_of (i.item ->> 'electricityIsDemand') as is_demand
          ) f
        where
          d.id = m.bill_id
          and m.meters > 1
          and metersync.is_current_line (i.item ->> 'billingPeriod')
        offset
          0
      ) l on true
    where
      m.has_bill
      and case
        when m.is_bill then m.rows = 1
        else m.meter_id is not null
        or m.meters = 0
      end
  ),
  line_shares as (
    select
      *,
      sum(part) over (
        partition by
          company_id,
          bill_id,
          seq
      ) as parts
    from
      line_parts
  ),
  charged as (
    select
      bill_id,
      company_id,
      site_id,
      provider,
      account_number,
      invoice_id,
      meter_id,
      datasource_type,
      currency,
      period,
      cost,
      cost_source,
      usage,
      units,
      sum(
        amount * case
          when parts > 0 then coalesce(part, 0) / parts
          else 1.0 / greatest(meters, 1)
        end
      ) as charged
    from
      line_shares
    group by
      company_id,
      bill_id,
      meter_id,
      site_id,
      provider,
      account_number,
      invoice_id,
      datasource_type,
      currency,
      period,
      cost,
      cost_source,
      usage,
      units
  ),
  placed as (
    select
      *,
      row_number() over meters_so_far as place,
      count(*) over bill as places,
      sum(charged) over meters_so_far as charged_through,
      sum(charged) over bill as charged_total,
      bool_and(coalesce(charged >= 0, false)) over bill
      and sum(charged) over bill > 0 as is_by_lines
    from
      charged
    window
      bill as (
        partition by
          company_id,
          bill_id
      ),
      meters_so_far as (
        bill
        order by
          meter_id
      )
  ),
  weighed as (
    select
      *,
      case
        when is_by_lines then charged
        else 1
      end as weight,
      case
        when is_by_lines then charged_through
        else place
      end as weight_through,
      case
        when is_by_lines then charged_total
        else places
      end as weight_total
    from
      placed
  ),
  shared as (
    select
      *,
      case
        when places = 1 then cost
        else case
          when place = places then cost
          else round(cost * weight_through / weight_total, greatest(scale(cost), 2))
        end - case
          when place = 1 then 0
          else round(cost * (weight_through - weight) / weight_total, greatest(scale(cost), 2))
        end
      end as part
    from
      weighed
  )
select
  p.bill_id,
  p.company_id,
  c.name as company,
  p.site_id,
  s.name as site,
  p.provider,
  p.account_number,
  p.invoice_id,
  p.meter_id,
  metersync.meter_number (m.raw) as meter_number,
  p.datasource_type as commodity,
  p.period,
  lower(p.period) as first_day,
  upper(p.period) - 1 as last_day,
  p.usage,
  p.units,
  p.part as cost,
  p.currency,
  round(p.part / nullif(p.usage, 0), 6) as cost_per_unit,
  case
    when p.meter_id is null then 'none'
    when p.places = 1 then 'direct'
    when p.is_by_lines then 'line_items'
    else 'equal'
  end as allocation_method,
  p.cost as bill_cost,
  p.cost_source
from
  shared p
  left join utility.companies c on c.id = p.company_id
  left join utility.sites s on s.id = p.site_id
  left join utility.meters m on m.id = p.meter_id
order by
  uuid_hash (bill_id);
comment on view analytics.bill_meters is 'One row for each bill and meter on it, with what was used and what it cost. Costs add up to the bill exactly.';
comment on column analytics.bill_meters.site_id is 'Site of the meter, or else of the document.';
comment on column analytics.bill_meters.meter_id is 'Meter; NULL for bills without a meter.';
comment on column analytics.bill_meters.commodity is 'Commodity of the meter; NULL for bills without a meter.';
comment on column analytics.bill_meters.period is 'Days of the meter''s usage on the bill, or else of the bill, or else its date; a half-open range.';
comment on column analytics.bill_meters.usage is 'Usage of the bill in units, with the sign that it has in sums: excluded and exported usage is subtracted. NULL if it is in several units. Demand is not included.';
comment on column analytics.bill_meters.units is 'Standard unit of usage; NULL where it is in several.';
comment on column analytics.bill_meters.cost is 'The meter''s part of the bill''s cost.';
comment on column analytics.bill_meters.cost_per_unit is 'cost / usage; NULL without usage.';
comment on column analytics.bill_meters.allocation_method is 'How the cost of the bill was divided. direct: it has one meter. line_items: its lines by use or demand, and fees, taxes and demand in several units equally. equal: its lines have no usable amounts. none: it has no meter.';
comment on column analytics.bill_meters.bill_cost is 'Cost of the bill.';
comment on column analytics.bill_meters.cost_source is 'Which charges cost is: see bills.';
