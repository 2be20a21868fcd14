-- Usage by calendar month, as bills tell it; what has no dates stands in month NULL. Months between two bills that no bill is
-- for are there with NULL, up to the month of now, unless the bills are ten years apart: then one of the dates is wrong.
create or replace view analytics.monthly_usage as
select company_id, site_id, meter_id, datasource_type, month, standard_units as units,
  billed_usage, billed_usage - coalesce(uncounted_usage, 0) as usage,
  round((billed_usage - coalesce(uncounted_usage, 0)) * days_in_month / nullif(days_covered, 0), 6) as extrapolated_usage,
  case when first_units = last_units then round(billed_usage / factor, 6) end as original_usage,
  case when first_units = last_units then first_units end as original_units, generated_usage,
  -- What is told with its unit before what is not.
  case when is_power or told_demand is null then demand else told_demand[2] end as peak_demand,
  days_in_month, days_covered, round(days_covered::numeric / days_in_month, 4) as coverage, days_overlapped, estimated_days,
  days_covered = days_in_month and days_overlapped = 0 as is_complete,
  coalesce(cardinality(bill_ids), 0) as bills, bill_ids,
  case when is_power then standard_units else (array['kVAR', 'kVA', 'kW'])[told_demand[1]::integer] end as peak_demand_units,
  unmetered_source, datasource_type as commodity
from (
  select company_id, site_id, meter_id, datasource_type, month, standard_units, days_in_month, unmetered_source,
    sum(share) as billed_usage, sum(share - counted_share) filter (where overlapped_days is not null) as uncounted_usage,
    min(factor) as factor, min(usage_units) as first_units, max(usage_units) as last_units,
    sum(generated) as generated_usage,
    bool_or(is_power) as is_power, max(demand) as demand, max(told_demand) as told_demand,
    (coalesce(sum(days) filter (where overlapped_days is null), 0)
      + coalesce(metersync.days_in(range_agg(days_here) filter (where overlapped_days is not null)), 0))::integer as days_covered,
    coalesce(metersync.days_in(range_agg(overlapped_days) filter (where overlapped_days is not null)), 0) as days_overlapped,
    (coalesce(sum(days) filter (where overlapped_days is null and is_estimated), 0)
      + coalesce(metersync.days_in(range_agg(days_here) filter (where overlapped_days is not null and is_estimated)), 0))::integer
      as estimated_days,
    array_agg(distinct bill_id) filter (where (days > 0 or month is null) and bill_id is not null) as bill_ids
  from (
    select u.company_id, u.site_id, u.meter_id, u.datasource_type, u.bill_id, u.usage_units, u.standard_units, u.factor,
      u.is_estimated, u.unmetered_source, m.month, m.days_in_month, m.days, m.is_power,
      case when m.month is not null and m.days = 0 then null
        when m.is_power then greatest(u.standard_usage, u.billed_demand * u.factor) else u.billed_demand end as demand,
      -- With the place of its unit: kW before kVA before kVAR, as they are not compared.
      case when m.days = 0 and m.month is not null then null
        when u.demand_kw is not null then array[3, u.demand_kw]
        when u.demand_kva is not null then array[2, u.demand_kva]
        when u.demand_kvar is not null then array[1, u.demand_kvar] end as told_demand,
      case when m.is_power then null when m.month is null then u.signed_usage
        when m.days > 0 then metersync.share(u.signed_usage, m.before, m.through, u.period_days, greatest(scale(u.signed_usage), 6))
        end as share,
      case when u.sign <> 0 or m.is_power then null when m.month is null then u.standard_usage
        when m.days > 0 then metersync.share(u.standard_usage, m.before, m.through, u.period_days, greatest(scale(u.standard_usage), 6))
        end as generated,
      case when not u.may_overlap then null else
        datemultirange(u.period * m.dates) - u.counted_days end as overlapped_days,
      case when u.may_overlap then datemultirange(u.period * m.dates) end as days_here,
      case when u.may_overlap and m.days > 0 and not m.is_power
        then round(u.signed_usage * metersync.days_in(u.counted_days * datemultirange(m.dates)) / u.period_days,
          greatest(scale(u.signed_usage), 6)) end as counted_share
    from analytics.usage u
      cross join lateral (
        select month, daterange(month, next_month) as dates, next_month - month as days_in_month,
          month - lower(u.period) as before, least(next_month, upper(u.period)) - lower(u.period) as through,
          greatest(0, least(next_month, upper(u.period)) - greatest(month, lower(u.period))) as days,
          u.dimension in ('power', 'apparent power', 'reactive power') as is_power
        from (select) one left join (
          select first::date as month, (first + interval '1 month')::date as next_month
          from generate_series(date_trunc('month', lower(u.period)::timestamp), greatest(upper(u.period) - 1,
            case when u.next_start - upper(u.period) <= 3660
              then least((date_trunc('month', u.next_start::timestamp) - interval '1 day')::date, current_date) end),
            interval '1 month') as first
          offset 0) months on true
        offset 0
      ) m
  ) shared
  group by company_id, meter_id, month, standard_units, site_id, datasource_type, days_in_month, unmetered_source
) grouped;
comment on view analytics.monthly_usage is 'Usage of each meter in each calendar month, from its bills spread evenly over their days. Months without any day billed are NULL, not zero.';
select metersync.comment_columns('analytics.monthly_usage', '{
  "month": "First day of the month; NULL for usage without dates, of which no days are known.",
  "units": "Standard unit of the amounts.",
  "billed_usage": "Share of every bill that counts: the months of a bill add up to it exactly, what rounding leaves falls in its last month. Where bills overlap, their days are in it twice.",
  "usage": "The same with each day counted once, from the newest bill that is for it. NULL when no day of the month is billed; for part of the month when coverage is below 1.",
  "extrapolated_usage": "usage by the days covered, for the days of the whole month: an estimate.",
  "original_usage": "billed_usage in the unit of the bills; NULL where they use several.",
  "original_units": "That unit.",
  "generated_usage": "Generation (net metering), which usage leaves out.",
  "peak_demand": "Highest demand that a bill of the month has, never a share. Rows of a unit of power are the service''s rows of demand: theirs is in peak_demand_units. Elsewhere it is the highest of the bill''s demand meters (v2.2), which tell their unit, else what was billed (billed_demand), in the bill''s own unit, which the service does not tell.",
  "days_in_month": "Days of the month.",
  "days_covered": "Days that at least one bill is for.",
  "coverage": "days_covered / days_in_month.",
  "days_overlapped": "Days that more than one bill is for.",
  "estimated_days": "Days whose bill is estimated.",
  "is_complete": "Whether each day is billed, and once.",
  "bills": "Bills that have days in the month, or no dates where month is NULL.",
  "bill_ids": "Their documents.",
  "peak_demand_units": "Standard unit of peak_demand, kW, kVA or kVAR: where several are told, the first of these; NULL where the service does not tell it.",
  "unmetered_source": "Of records without a meter: their commodity and account, else their bill (see usage); NULL for a meter."
}');

create or replace view analytics.monthly_usage_by_site as
select company_id, site_id, datasource_type, month, units, sum(billed_usage) as billed_usage, sum(usage) as usage,
  sum(generated_usage) as generated_usage, coalesce(max(peak_demand) filter (where peak_demand_units = 'kW'), max(peak_demand) filter (where peak_demand_units = 'kVA'),
    max(peak_demand) filter (where peak_demand_units = 'kVAR'), max(peak_demand)) as peak_demand, count(*)::integer as meters,
  (count(*) filter (where is_complete))::integer as meters_complete,
  round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage, sum(days_overlapped)::integer as days_overlapped,
  sum(estimated_days)::integer as estimated_days, bool_and(is_complete) as is_complete, case when bool_or(peak_demand_units = 'kW') then 'kW' else min(peak_demand_units) end as peak_demand_units,
  datasource_type as commodity
from analytics.monthly_usage
group by company_id, site_id, datasource_type, month, units;
comment on view analytics.monthly_usage_by_site is 'monthly_usage of the meters of each site, net: what was exported is subtracted.';

create or replace view analytics.monthly_usage_by_company as
select company_id, datasource_type, month, units, sum(billed_usage) as billed_usage, sum(usage) as usage,
  sum(generated_usage) as generated_usage, coalesce(max(peak_demand) filter (where peak_demand_units = 'kW'), max(peak_demand) filter (where peak_demand_units = 'kVA'),
    max(peak_demand) filter (where peak_demand_units = 'kVAR'), max(peak_demand)) as peak_demand, count(distinct site_id)::integer as sites,
  count(*)::integer as meters, (count(*) filter (where is_complete))::integer as meters_complete,
  round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage, sum(days_overlapped)::integer as days_overlapped,
  sum(estimated_days)::integer as estimated_days, bool_and(is_complete) as is_complete, case when bool_or(peak_demand_units = 'kW') then 'kW' else min(peak_demand_units) end as peak_demand_units,
  datasource_type as commodity
from analytics.monthly_usage
group by company_id, datasource_type, month, units;
comment on view analytics.monthly_usage_by_company is 'monthly_usage of the meters of each company, net: what was exported is subtracted.';
select metersync.comment_columns(view, '{
  "month": "First day of the month; NULL for usage without dates.",
  "units": "Standard unit of the amounts.",
  "billed_usage": "Sum over meters: adds up to the bills exactly.",
  "usage": "Sum over meters, each day counted once; NULL when no meter has a day billed.",
  "generated_usage": "Generation, which usage leaves out.",
  "peak_demand": "Highest demand of any one meter that tells it in peak_demand_units: meters peak at different times, so it is no sum.",
  "meters": "Meters that have bills before and after, or in, the month; records without a meter count as one for each account.",
  "meters_complete": "Those with each day billed once.",
  "coverage": "Days covered of the days of all its meters.",
  "days_overlapped": "Days that more than one bill is for, over all meters.",
  "estimated_days": "Days whose bill is estimated, over all meters.",
  "is_complete": "Whether all meters are complete.",
  "peak_demand_units": "Standard unit of peak_demand: kW where any meter has it, else kVA, else kVAR; NULL where the service does not tell it."
}') from unnest(array['analytics.monthly_usage_by_site', 'analytics.monthly_usage_by_company']::regclass[]) as view;

create or replace view analytics.monthly_cost as
select company_id, site_id, meter_id, datasource_type, currency, month, cost, days_in_month, days_covered,
  round(days_covered::numeric / days_in_month, 4) as coverage, (days_billed - days_covered)::integer as days_overlapped,
  coalesce(cardinality(bill_ids), 0) as bills, bill_ids, datasource_type as commodity
from (
  select company_id, site_id, meter_id, datasource_type, currency, month, days_in_month, sum(share) as cost,
    coalesce(sum(days), 0) as days_billed,
    (case when count(days) <= 1 then coalesce(sum(days), 0) else metersync.days_in(range_agg(days_here)) end)::integer as days_covered,
    array_agg(distinct bill_id) filter (where days > 0 or month is null) as bill_ids
  from (
    select c.company_id, c.site_id, c.meter_id, c.datasource_type, c.currency, c.bill_id, m.month, m.days_in_month, m.days,
      c.period * m.dates as days_here,
      case when m.days > 0 or c.period is null then metersync.share(c.cost, m.before, m.through, m.total,
        greatest(scale(c.cost), 2)) end as share
    from analytics.bill_costs c
      cross join lateral (
        select first::date as month, daterange(first::date, (first + interval '1 month')::date) as dates,
          (first + interval '1 month')::date - first::date as days_in_month, first::date - lower(c.period) as before,
          least((first + interval '1 month')::date, upper(c.period)) - lower(c.period) as through,
          upper(c.period) - lower(c.period) as total,
          least((first + interval '1 month')::date, upper(c.period)) - greatest(first::date, lower(c.period)) as days
        from generate_series(date_trunc('month', lower(c.period)::timestamp), upper(c.period) - 1, interval '1 month') as first
        union all
        select null, null, null, 0, 1, 1, null where c.period is null
      ) m
  ) shared
  group by company_id, meter_id, month, currency, site_id, datasource_type, days_in_month
) grouped;
comment on view analytics.monthly_cost is 'Cost of each meter in each calendar month and currency, from its bills spread evenly over their days. Months of a bill add up to its cost exactly.';

create or replace view analytics.monthly_cost_by_site as
select company_id, site_id, currency, month, sum(cost) as cost, count(distinct meter_id)::integer as meters,
  round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage
from analytics.monthly_cost
group by company_id, site_id, currency, month;
comment on view analytics.monthly_cost_by_site is 'monthly_cost of the meters of each site.';

create or replace view analytics.monthly_cost_by_company as
select company_id, currency, month, sum(cost) as cost, count(distinct site_id)::integer as sites,
  count(distinct meter_id)::integer as meters, round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage
from analytics.monthly_cost
group by company_id, currency, month;
comment on view analytics.monthly_cost_by_company is 'monthly_cost of the meters of each company.';
select metersync.comment_columns(view, '{
  "month": "First day of the month; NULL for bills without any date.",
  "cost": "Share of the cost of bills, in currency.",
  "coverage": "Days covered of the days of the month, over all its meters."
}') from unnest(array['analytics.monthly_cost', 'analytics.monthly_cost_by_site', 'analytics.monthly_cost_by_company']::regclass[])
  as view;
select metersync.comment_columns('analytics.monthly_cost', '{
  "meter_id": "Meter; NULL for bills without usage.",
  "days_in_month": "Days of the month.",
  "days_covered": "Days that at least one bill is for.",
  "days_overlapped": "Days that bills are for once more.",
  "bills": "Bills that have days in the month, or no dates where month is NULL.",
  "bill_ids": "Their documents."
}');

-- Usage and cost beside each other, each once: a commodity of several units or currencies has a row
-- for each, the first unit beside the first currency, so that no sum has anything twice. Rows of
-- demand have no usage. What each view says is sorted in by place, as a join would multiply it.
create or replace view analytics.monthly_by_site as
with told as (
  select
    company_id,
    site_id,
    datasource_type as commodity,
    month,
    units,
    usage,
    coverage,
    is_complete,
    null as currency,
    null::numeric as cost,
    row_number() over (
      partition by company_id, site_id, datasource_type, month
      order by units
    ) as place
  from analytics.monthly_usage_by_site
  where units is null
    or units not in ('kW', 'kVA', 'kVAR')
  union all
  select
    company_id,
    site_id,
    datasource_type,
    month,
    null,
    null,
    null,
    null,
    currency,
    sum(cost),
    row_number() over (
      partition by company_id, site_id, datasource_type, month
      order by currency
    )
  from analytics.monthly_cost
  group by company_id, site_id, datasource_type, month, currency
), placed as (
  select
    company_id,
    site_id,
    commodity,
    month,
    place,
    sum(usage) as usage,
    min(units) as units,
    sum(cost) as cost,
    min(currency) as currency,
    min(coverage) as coverage,
    bool_and(is_complete) as is_complete
  from told
  group by company_id, site_id, commodity, month, place
), final as (
  select
    p.company_id,
    c.name as company,
    p.site_id,
    s.name as site,
    p.commodity,
    p.month,
    p.usage,
    p.units,
    p.cost,
    p.currency,
    p.coverage,
    p.is_complete,
    p.commodity as datasource_type
  from placed p
    left join utility.companies c on c.id = p.company_id
    left join utility.sites s on s.id = p.site_id
)
select *
from final;
comment on view analytics.monthly_by_site is 'Usage and cost of each site, commodity and month, with names. Sums over any rows are right: where there are several units or currencies, each has a row of its own, and stands once.';
select metersync.comment_columns('analytics.monthly_by_site', '{
  "company": "Its name.",
  "site": "Its name.",
  "commodity": "ELECTRICITY, GAS, WATER, …; NULL for the cost of bills without usage.",
  "month": "First day of the month; NULL for what has no dates.",
  "usage": "Usage, each day counted once (monthly_usage_by_site); NULL where none is known, and in rows of a further currency.",
  "units": "Standard unit of usage.",
  "cost": "Cost of the commodity''s meters alone, in currency; NULL where none is known, and in rows of a further unit.",
  "currency": "Currency of cost: never add those of several.",
  "coverage": "Part of the days of all its meters that bills are for.",
  "is_complete": "Whether each day of each meter is billed, and once."
}');
