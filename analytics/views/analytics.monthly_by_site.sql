create or replace view analytics.monthly_by_site as
select
  m.company_id,
  c.name as company,
  m.site_id,
  s.name as site,
  m.commodity,
  m.month,
  m.usage,
  m.units,
  m.cost,
  m.currency,
  m.coverage,
  m.is_complete,
  m.commodity as datasource_type
from
  (
    {{months of="monthly_by_site"}}
    union all
    select
      null as company_id,
      site_id,
      commodity,
      month,
      usage,
      units,
      cost,
      currency,
      coverage,
      is_complete
    from
      metersync.monthly_by_site_of (null)
  ) m
  left join utility.companies c on c.id = m.company_id
  left join utility.sites s on s.id = m.site_id;
comment on view analytics.monthly_by_site is 'Usage and cost of each site, commodity and month. Several units or currencies have rows of their own.';
comment on column analytics.monthly_by_site.company is 'Name of the company.';
comment on column analytics.monthly_by_site.site is 'Name of the site.';
comment on column analytics.monthly_by_site.commodity is 'NULL for the cost of bills without a meter.';
comment on column analytics.monthly_by_site.month is 'First day of the month; NULL for what has no dates.';
comment on column analytics.monthly_by_site.usage is 'Usage, each day counted once; NULL in rows of a further currency.';
comment on column analytics.monthly_by_site.units is 'Standard unit of the amounts.';
comment on column analytics.monthly_by_site.cost is 'Cost of the commodity''s meters; NULL in rows of a further unit.';
comment on column analytics.monthly_by_site.currency is 'Currency of the amounts: never add those of several.';
comment on column analytics.monthly_by_site.coverage is 'Billed part of the days of all its meters.';
comment on column analytics.monthly_by_site.is_complete is 'Whether each day is billed once.';
