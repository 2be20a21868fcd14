-- Divides the cost of a bill among its meters. Lines of a commodity are divided by use among its
-- meters, demand among meters with demand, the rest in equal parts. The parts are scaled to the
-- cost of the bill, and add up to it exactly: each is the difference of two rounded running sums.
create or replace view analytics.bill_costs as
with
  bill_meters as (
    select
      company_id,
      bill_id,
      meter_id,
      min(site_id::text)::uuid as site_id,
      min(datasource_type) as datasource_type,
      case
        when count(period) > 0 then daterange(
          metersync.first_day(min(lower(period)), max(upper(period)) - 1),
          max(upper(period))
        )
      end as period,
      count(*) over (partition by company_id, bill_id) as meters
    from analytics.usage
    where bill_id is not null
      and meter_id is not null
    group by company_id, bill_id, meter_id
  ),
  charged as (
    select
      b.bill_id,
      b.company_id,
      coalesce(m.site_id, b.site_id) as site_id,
      m.meter_id,
      m.datasource_type,
      b.currency,
      coalesce(
        m.period,
        b.period,
        case
          when b.bill_date is not null then daterange(b.bill_date, b.bill_date + 1)
        end
      ) as period,
      b.cost,
      b.cost_source,
      c.charged
    from analytics.bills b
      left join bill_meters m on m.bill_id = b.bill_id
        and m.company_id = b.company_id
        -- Documents are read where a bill has several meters: else there is nothing to divide.
      left join lateral (
        with
          lines as (
            select
              l.*,
              d.raw
            from utility.documents d
              cross join jsonb_array_elements(metersync.elements(d.raw -> 'lineItems')) as i(item)
              cross join lateral (
                select
                  metersync.number_of(i.item ->> 'totalCharge') as amount,
                  metersync.is_current_line(i.item ->> 'billingPeriod') as is_current,
                  metersync.boolean_of(i.item ->> 'electricityIsDemand') as is_demand,
                  i.item ->> 'quantity' is not null as is_by_use,
                  case
                    when i.item ->> 'electricityChargeType' <> '' then 'ELECTRICITY'
                    when i.item ->> 'gasChargeType' <> '' then 'GAS'
                  end as datasource_type,
                  i.item ->> 'quantityUnits' as units
                offset 0
              ) l
            where d.id = b.bill_id
              and m.meters > 1
              and l.is_current
          ),
          parts as (
            select
              l.amount,
              p.of_all,
              p.of_meter
            from lines l
              cross join lateral (
                select
                  sum(o.part) as of_all,
                  sum(o.part) filter (where o.meter_id = m.meter_id) as of_meter
                from (
                  select
                    u ->> 'meter' as meter_id,
                    case
                      when not l.is_by_use then 1
                      when l.is_demand then (metersync.number_of(u ->> 'billedDemand') > 0)::int
                      when l.datasource_type is not null
                        and u ->> 'datasourceType' is distinct from l.datasource_type then 0
                      when l.datasource_type is null
                        and u ->> 'usageUnits' is distinct from l.units then 0
                      else abs(metersync.number_of(u ->> 'usage'))
                    end as part
                  from jsonb_array_elements(metersync.elements(l.raw -> 'usageData')) as u
                ) o
              ) p
          )
        select
          sum(
            amount * case
              when of_all > 0 then of_meter / of_all
              else 1.0 / m.meters
            end
          ) as charged
        from parts
      ) c on true
  ),
  placed as (
    select
      *,
      row_number() over (partition by company_id, bill_id order by meter_id) as place,
      count(*) over (partition by company_id, bill_id) as places,
      sum(charged) over (partition by company_id, bill_id order by meter_id) as charged_through,
      sum(charged) over (partition by company_id, bill_id) as charged_total,
      bool_and(coalesce(charged >= 0, false)) over (partition by company_id, bill_id)
      and sum(charged) over (partition by company_id, bill_id) > 0 as is_by_lines
    from charged
  ),
  weighed as (
    select
      *,
      case when is_by_lines then charged else 1 end as weight,
      case
        when is_by_lines then charged_through
        else place
      end as weight_through,
      case when is_by_lines then charged_total else places end as weight_total
    from placed
  ),
  final as (
    select
      bill_id,
      company_id,
      site_id,
      meter_id,
      datasource_type,
      currency,
      period,
      case
        when places = 1 then cost
        else case
          when place = places then cost
          else round(cost * weight_through / weight_total, greatest(scale(cost), 2))
        end - case
          when place = 1 then 0
          else round(cost * (weight_through - weight) / weight_total, greatest(scale(cost), 2))
        end
      end as cost,
      case
        when meter_id is null then 'none'
        when places = 1 then 'direct'
        when is_by_lines then 'line_items'
        else 'equal'
      end as allocation_method,
      cost as bill_cost,
      cost_source,
      datasource_type as commodity,
      bill_id as document_id
    from weighed
  )
select * from final;

comment on view analytics.bill_costs is
  'One row for each bill and meter on it. Parts add up to the bill exactly.';
comment on column analytics.bill_costs.site_id is 'Site of the meter, else of the document.';
comment on column analytics.bill_costs.meter_id is 'Meter; NULL for bills without usage.';
comment on column analytics.bill_costs.period is
  'Days of the meter''s usage on the bill, else of the bill, else its date; half-open.';
comment on column analytics.bill_costs.cost is 'The meter''s part of the bill''s cost.';
comment on column analytics.bill_costs.allocation_method is
  'direct: one meter; line_items: lines by usage or demand, fees and taxes equally; equal: '
  'lines without usable amounts; none: no meter.';
comment on column analytics.bill_costs.bill_cost is 'Cost of the bill.';
comment on column analytics.bill_costs.cost_source is 'Which charges cost is: see bills.';
