-- Usage and cost next to each other, each once. A commodity with several units or currencies has a
-- row for each, the first unit next to the first currency, so that no sum counts anything twice.
-- Rows of demand have no usage. The rows of the two views are matched by their position, because a
-- join would multiply them.
create or replace view analytics.monthly_by_site as
with amounts as (
  select
    company_id, site_id, commodity, month, units,
    sum(usage) as usage,
    round(sum(days_covered)::numeric / sum(days_in_month), 4) as coverage,
    bool_and(is_complete) as is_complete,
    null as currency,
    null::numeric as cost,
    row_number() over (partition by company_id, site_id, commodity, month order by units) as place
  from analytics.monthly_usage
  where units is null
    or units not in ('kW', 'kVA', 'kVAR')
  group by company_id, site_id, commodity, month, units
  union all
  select
    company_id, site_id, commodity, month, null, null, null, null, currency, sum(cost),
    row_number() over (partition by company_id, site_id, commodity, month order by currency)
  from analytics.monthly_cost
  group by company_id, site_id, commodity, month, currency
), months as (
  select
    company_id, site_id, commodity, month,
    sum(usage) as usage,
    min(units) as units,
    sum(cost) as cost,
    min(currency) as currency,
    min(coverage) as coverage,
    bool_and(is_complete) as is_complete
  from amounts
  group by company_id, site_id, commodity, month, place
)
select
  m.company_id,
  c.name as company,
  m.site_id,
  s.name as site,
  m.commodity, m.month, m.usage, m.units, m.cost, m.currency, m.coverage, m.is_complete,
  m.commodity as datasource_type
from months m
  left join utility.companies c on c.id = m.company_id
  left join utility.sites s on s.id = m.site_id;
comment on view analytics.monthly_by_site is
  'Usage and cost of each site, commodity and month, with a row for each unit or currency.';
comment on column analytics.monthly_by_site.usage is
  'Usage, each day counted once; NULL in rows of a further currency.';
comment on column analytics.monthly_by_site.units is 'Standard unit of usage.';
comment on column analytics.monthly_by_site.cost is
  'Cost of the commodity''s meters; NULL in rows of a further unit.';
