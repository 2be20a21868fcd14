-- Usage and cost beside each other, each once: a commodity of several units or currencies has a row
-- for each, the first unit beside the first currency, so that no sum has anything twice. Rows of
-- demand have no usage. What each view says is sorted in by place, as a join would multiply it.
create or replace view metersync.monthly_by_site_now as
with
  amounts as (
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
        partition by
          company_id,
          site_id,
          datasource_type,
          month
        order by
          units
      ) as place
    from
      analytics.monthly_usage_by_site
    where
      units is null
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
        partition by
          company_id,
          site_id,
          datasource_type,
          month
        order by
          currency
      )
    from
      analytics.monthly_cost
    group by
      company_id,
      site_id,
      datasource_type,
      month,
      currency
  ),
  final as (
    select
      company_id,
      site_id,
      commodity,
      month,
      sum(usage) as usage,
      min(units) as units,
      sum(cost) as cost,
      min(currency) as currency,
      min(coverage) as coverage,
      bool_and(is_complete) as is_complete
    from
      amounts
    group by
      company_id,
      site_id,
      commodity,
      month,
      place
  )
select
  *
from
  final;
comment on view metersync.monthly_by_site_now is 'Usage and cost by month of the sites of a company, worked out from its months.';
