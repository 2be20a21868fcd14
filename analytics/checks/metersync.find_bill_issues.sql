-- Runs the checks of the bills and the usage of a company. Each check is a select of the union.
create or replace function metersync.find_bill_issues (company uuid, today date)
returns table (check_name text, entity_id text, subject text, evidence jsonb)
language sql stable rows 100
set enable_hashjoin = on
set enable_mergejoin = on as $$
  with usage as materialized (select * from metersync.usage_to_check(company)),
  bills as materialized (select * from metersync.bills_to_check(company)),
  metered as materialized (
    select *
    from usage
    where meter_id is not null
      and period is not null
  ), rates as materialized (
    select
      meter_id, bill_id, standard_units,
      lower(period) as first_day,
      sum(standard_usage) / period_days as per_day
    from metered
    where period_days > 1
      and is_excluded is not true
      and not metersync.is_power(dimension)
      and standard_usage is not null
    group by meter_id, bill_id, standard_units, period, period_days
  ), listed as materialized (
    -- The usage that the service lists for each bill, in whichever company.
    select
      b.bill_id,
      min(r.usage_units) as usage_units,
      metersync.unit_key(r.usage_units) as unit_key,
      sum(metersync.amount(r.usage)) as usage,
      sum(abs(metersync.amount(r.usage))) as used,
      count(*) filter (where r.usage is not null and metersync.amount(r.usage) is null) as unusable
    from bills b
      cross join lateral (
        select r.usage_units, r.usage
        from utility.usage_data r
        where r.document_id = b.bill_id
          and r.deleted_at is null
        offset 0
      ) r
    group by b.bill_id, metersync.unit_key(r.usage_units)
  ), expected as materialized (
    {{expected_bills periods="metered"
      connections="(select * from utility.connections where company_id = company)"}}
  ),
  -- What a day of a meter costs, if its bills are in one currency. A bill's cost is divided
  -- equally among its meters.
  meters_of_bills as (
    select
      bill_id, meter_id,
      max(period_days) as days,
      count(*) over (partition by bill_id) as meters
    from metered
    group by bill_id, meter_id
  ), daily_costs as (
    select
      m.meter_id,
      sum(b.cost / m.meters) / sum(m.days) as per_day,
      avg(m.days) as usual_days,
      min(b.currency) as currency,
      max(m.meters) > 1 as is_share
    from meters_of_bills m
      join bills b on b.bill_id = m.bill_id
    where b.cost is not null
    group by m.meter_id
    having count(distinct b.currency) = 1
  ), gaps as (
    select
      m.meter_id,
      lower(gap) as first_day,
      upper(gap) as until,
      upper(gap) - lower(gap) as days
    from expected m
      cross join lateral unnest(
        (datemultirange(range_merge(m.days)) - m.days) * datemultirange(daterange(null, m.ends_on))
      ) as gap
  ), keyed as materialized (
    select
      bill_id, created, currency, cost, bill_date,
      metersync.comparable(account_number) as account,
      metersync.comparable(invoice_id) as invoice,
      metersync.comparable(provider) as provider
    from bills
  ),
  -- What makes bills alike, besides what they charge for. Bills without a provider are compared by
  -- their account, but not by their invoice: numbers of invoices are unique only for a provider.
  numbered as materialized (
    select
      k.bill_id, k.created, k.currency, k.cost, n.by, n.key,
      row_number() over (
        partition by n.by, n.key, k.currency, k.cost
        order by k.created, k.bill_id
      ) as place
    from keyed k
      cross join lateral (
        values
          (
            'account, provider and bill date',
            jsonb_build_array(account, provider, bill_date),
            account, bill_date::text
          ),
          ('invoice number and provider', jsonb_build_array(invoice, provider), invoice, provider)
      ) as n (by, key, first, second)
    where n.first is not null
      and n.second is not null
  ),
  -- A credit note cancels a bill over the same amount.
  cancelled as materialized (
    select b.bill_id, b.by
    from numbered b
      join numbered c on c.by = b.by
        and c.key = b.key
        and c.currency is not distinct from b.currency
        and c.cost = -b.cost
        and c.place = b.place
    where b.cost > 0
  ), standing as materialized (
    select n.*
    from numbered n
    where n.cost < 0 is not true
      and not exists (select from cancelled c where c.bill_id = n.bill_id and c.by = n.by)
  ), costs as (
    select unnest(array_agg(bill_id)) as bill_id
    from keyed
    where bill_id not in (select bill_id from cancelled)
    group by currency, cost
    having count(*) > 1
  ), charged as (
    -- What each bill charges for, in one unit: 1 MWh is 1000 kWh, and 1000.0 is 1000.
    select
      u.bill_id,
      string_agg(
        concat_ws(' ', u.meter_id, u.period, a.amount, coalesce(u.standard_units, u.usage_units)),
        ','
        order by u.meter_id, u.period, a.amount
      ) as charges
    from costs c
      join usage u on u.bill_id = c.bill_id
      cross join lateral (
        select trim_scale(round(coalesce(u.standard_usage, u.usage), 6)) as amount
      ) a
    group by u.bill_id
  ), shared_days as (
    select b.bill_id, o.bill_id as original, o.created
    from standing b
      join metered ub on ub.bill_id = b.bill_id
      join metered uo on uo.meter_id = ub.meter_id and uo.period && ub.period
      join standing o on o.bill_id = uo.bill_id
        and o.by = b.by
        and o.key = b.key
        and (o.created, o.bill_id) < (b.created, b.bill_id)
    where b.by = 'invoice number and provider'
  ), alike as (
    select
      b.bill_id,
      1 as rank,
      'meters, days, usage and cost' as by,
      first_value(b.bill_id) over (
        partition by b.currency, b.cost, c.charges
        order by b.created, b.bill_id
      ) as original,
      null as severity
    from keyed b
      join charged c on c.bill_id = b.bill_id
    union all
    select
      bill_id,
      case by when 'account, provider and bill date' then 2 else 4 end,
      by,
      first_value(bill_id) over (partition by by, key order by created, bill_id),
      -- One invoice may be sent as several bills, each for other meters or days.
      case
        when by = 'invoice number and provider' and bill_id in (select bill_id from metered)
          then 'info'
      end
    from standing
    union all
    select
      bill_id, 3, 'invoice number and provider',
      (array_agg(original order by created, original))[1],
      null
    from shared_days
    group by bill_id
  ), duplicates as (
    select distinct on (bill_id) *
    from alike
    where original <> bill_id
    order by bill_id, rank
  ), usual_periods as (
    select
      account_number,
      percentile_disc(0.5) within group (order by period_days) as days
    from bills
    where account_number is not null
      and boundary_rule <> 'one_day'
    group by account_number
    having count(*) >= 3
  ), document_usage as (
    select
      b.bill_id,
      min(item ->> 'usageUnits') as units,
      metersync.unit_key(item ->> 'usageUnits') as unit_key,
      sum(metersync.number_of(item ->> 'usage')) as usage
    from bills b
      cross join lateral jsonb_array_elements(b.usage_rows) as item
    group by b.bill_id, metersync.unit_key(item ->> 'usageUnits')
  ), rates_before as (
    select
      *,
      array_agg(per_day) over (
        partition by meter_id, standard_units
        order by first_day range between interval '4 years' preceding and interval '1 day' preceding
      ) as before,
      min(per_day) over (partition by meter_id, standard_units) as lowest
    from rates
  ), jumps as materialized (
    -- At least nine of ten earlier rates are at most a third of the rate. Counting these rates is
    -- cheaper than sorting all of them.
    select r.*
    from rates_before r
      cross join lateral (
        select count(*) filter (where 3 * rate <= r.per_day) as low
        from unnest(r.before) as rate
      ) l
    where cardinality(r.before) >= 5
      -- A rate below three times the lowest cannot pass. This cheap condition excludes most
      -- bills.
      and r.per_day >= 3 * r.lowest
      and r.bill_id is not null
      and l.low >= 0.9 * cardinality(r.before)
  ), repeated as (
    select distinct meter_id
    from (
      select meter_id
      from rates
      where per_day <> 0
      group by meter_id, standard_units, per_day
      having count(*) >= 3
    ) r
  ), rate_changes as (
    select
      *,
      per_day is distinct from lag(per_day) over (
        partition by meter_id, standard_units
        order by first_day, bill_id
      ) as changed
    from rates
    where meter_id in (select meter_id from repeated)
  ), stretches as (
    select
      *,
      count(*) filter (where changed) over (
        partition by meter_id, standard_units
        order by first_day, bill_id
      ) as stretch
    from rate_changes
  ), unused as (
    select bill_id
    from listed
    group by bill_id
    having sum(used) = 0
      and sum(unusable) = 0
  ), of_several_units as (
    select meter_id
    from usage
    where meter_id is not null
    group by meter_id
    having min(units) <> max(units)
  ), units_before as (
    select
      *,
      lag(units) over (
        partition by meter_id, metersync.is_power(dimension), electricity_type
        order by lower(period), usage_id
      ) as before
    from usage
    where meter_id in (select meter_id from of_several_units)
  ), of_several_currencies as (
    select account_number
    from bills
    where account_number is not null
    group by account_number
    having min(currency) <> max(currency)
  ), currencies_before as (
    select
      *,
      lag(currency) over (partition by account_number order by period_start, created) as before
    from bills
    where account_number in (select account_number from of_several_currencies)
  ), without_record as (
    -- The document or the meter may belong to another company.
    select
      u.id,
      case when b.bill_id is null and d.id is null then u.document_id end as document,
      case when m.id is null then u.meter_id end as meter
    from utility.usage_data u
      left join bills b on b.bill_id = u.document_id
      left join lateral (
        select d.id
        from utility.documents d
        where b.bill_id is null
          and d.id = u.document_id
          and d.deleted_at is null
        offset 0
      ) d on true
      left join lateral (
        select m.id
        from utility.meters m
        where m.id = u.meter_id
          and m.deleted_at is null
        offset 0
      ) m on true
    where u.company_id = company
      and u.deleted_at is null
  )
  select
    'bill_gap', g.meter_id, g.first_day::text,
    jsonb_build_object('from', g.first_day, 'until', g.until, 'days', g.days) || case
      -- Many utilities leave out a day or two between bills. Then no bill is missing.
      when g.days < 3 then jsonb_build_object('extent', g.days || ' days', 'severity', 'info')
      when c.per_day is null then jsonb_build_object('extent', g.days || ' days')
      else jsonb_build_object(
        'extent', format(
          '%s days: about %s bills, some %s %s%s', g.days,
          greatest(1, round(g.days / c.usual_days)),
          to_char(round(g.days * c.per_day), 'FM999,999,999,999,999,990'),
          c.currency,
          case when c.is_share then ' for this meter' end
        ),
        'may_cost', round(g.days * c.per_day, 2),
        'currency', c.currency
      )
    end
  from gaps g
    left join daily_costs c on c.meter_id = g.meter_id
  union all
  select
    'bill_overlap', u.meter_id, lower(part)::text,
    jsonb_build_object(
      'from', lower(part),
      'until', upper(part),
      'days', upper(part) - lower(part),
      'older_bill', u.bill_id
    )
  from usage u
    cross join lateral unnest(datemultirange(u.period) - u.counted_days) as part
  where u.may_overlap
    and u.meter_id is not null
  union all
  select
    'duplicate_bill', bill_id::text, '',
    jsonb_strip_nulls(jsonb_build_object('same_as', original, 'by', by, 'severity', severity))
  from duplicates
  union all
  select
    'unusual_period', b.bill_id::text, '',
    jsonb_build_object('days', b.period_days, 'usual_days', p.days)
  from bills b
    join usual_periods p on p.account_number = b.account_number
  where b.boundary_rule <> 'one_day'
    and (b.period_days > greatest(65, 1.5 * p.days) or b.period_days < least(20, 0.5 * p.days))
  union all
  select
    'future_period', bill_id::text, '',
    jsonb_build_object('period_end', period_end)
  from bills
  where period_end > today
  union all
  select
    'amount_mismatch', bill_id::text, '',
    jsonb_build_object('current_charges', current_charges, 'lines', lines, 'currency', currency)
  from bills
  where abs(current_charges - lines) > 0.01
  union all
  select
    'usage_mismatch', t.bill_id::text, coalesce(t.units, ''),
    jsonb_build_object('on_document', t.usage, 'in_records', l.usage, 'units', t.units)
  from document_usage t
    left join listed l on l.bill_id = t.bill_id
      -- This condition can be hashed; "is not distinct from" cannot.
      and coalesce(l.unit_key, '') = coalesce(t.unit_key, '')
      and l.unit_key is not distinct from t.unit_key
  where t.usage is not null
    and abs(t.usage - l.usage) > 0.001 is not false
  union all
  select
    'usage_spike', r.bill_id::text, r.meter_id,
    jsonb_build_object(
      'per_day', round(r.per_day, 3),
      'usual_highest', round(h.highest, 3),
      'units', r.standard_units,
      'bills_before', h.bills
    )
  from jumps r
    cross join lateral (
      select
        percentile_disc(0.9) within group (order by rate) as highest,
        count(*) as bills
      from unnest(r.before) as rate
    ) h
  where h.highest > 0
    and r.per_day >= 3 * h.highest
  union all
  select
    'hidden_estimate', meter_id, min(first_day)::text,
    jsonb_build_object(
      'per_day', round(per_day, 3),
      'units', standard_units,
      'bills', array_agg(bill_id order by first_day),
      'count', count(*)
    )
  from stretches
  where per_day <> 0
  group by meter_id, standard_units, stretch, per_day
  having count(distinct bill_id) >= 3
  union all
  select
    'zero_usage_with_cost', b.bill_id::text, '',
    jsonb_build_object('cost', b.cost, 'currency', b.currency)
  from bills b
    join unused u on u.bill_id = b.bill_id
  where b.cost > 0
  union all
  select
    'negative_usage', u.usage_id::text, '',
    jsonb_build_object('usage', u.usage, 'units', u.usage_units, 'bill', u.bill_id)
  from usage u
    left join bills b on b.bill_id = u.bill_id
  where u.usage < 0
    and u.is_excluded is not true
    and u.net_metering_type is distinct from 'EXPORT'
    and coalesce(b.credits, 0) = 0
  union all
  select
    'unit_changed', usage_id::text, '',
    jsonb_build_object('units', units, 'before', before, 'meter', meter_id)
  from units_before
  where units <> before
  union all
  select
    'currency_changed', bill_id::text, '',
    jsonb_build_object('currency', currency, 'before', before, 'account', account_number)
  from currencies_before
  where currency <> before
  union all
  select
    'bad_dates', usage_id::text, '',
    jsonb_build_object(
      'start', start_date,
      'end', end_date,
      'quality', date_quality,
      'problem', case date_quality
        when 'inverted' then 'the end is before the start'
        when 'end_missing' then 'the end is the start, as an unknown end is sent'
        else 'a date is missing'
      end,
      'bill', bill_id
    )
  from usage
  where date_quality in ('end_missing', 'inverted', 'missing')
  union all
  select
    'late_bill', meter_id, '',
    jsonb_build_object(
      'billed_until', until,
      'usual_days', usual_days,
      'days_late', today - until - metersync.days_to_next_bill(usual_days)
    )
  from expected
  where today - until > 1.5 * usual_days
    -- Many last bills leave out a day or two.
    and ends_on > until + 2
  union all
  select
    'orphan', id::text, '',
    jsonb_strip_nulls(
      jsonb_build_object(
        'document', document,
        'meter', meter,
        'missing', concat_ws(' and ', 'document ' || document, 'meter ' || meter)
      )
    )
  from without_record
  where document is not null
    or meter is not null
  union all
  select
    'unknown_unit', meter_id, coalesce(usage_units, ''),
    jsonb_build_object('units', usage_units, 'records', count(*))
  from usage
  where dimension = 'unknown'
    and meter_id is not null
  group by meter_id, usage_units
  union all
  select
    'unknown_commodity', id, datasource_type,
    jsonb_build_object('datasource_type', datasource_type)
  from utility.meters
  where company_id = company
    and deleted_at is null
    and datasource_type not in (
      'ELECTRICITY', 'GAS', 'WATER', 'DISTRICT', 'WASTE', 'FUEL', 'MISC', 'REFRIGERANT', 'SOLAR',
      'TELECOM', 'SEWER', 'STEAM', 'CHILLED_WATER', 'HOT_WATER'
    )
  union all
  select 'unusable_amount', b.bill_id::text, field, jsonb_build_object('field', field)
  from bills b
    cross join lateral unnest(b.unusable) as field
  union all
  select
    'unusable_amount', bill_id::text, 'usage ' || coalesce(usage_units, ''),
    jsonb_build_object('field', 'usage', 'units', usage_units, 'records', unusable)
  from listed
  where unusable > 0
$$;
