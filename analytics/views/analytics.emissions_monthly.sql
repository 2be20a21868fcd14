create or replace view analytics.emissions_monthly as
select
  u.company_id, u.site_id, u.meter_id, u.datasource_type, u.month, u.usage, u.units, u.coverage,
  f.scope, f.method, f.version,
  f.id as factor_id,
  f.kg_co2e_per_unit,
  u.usage * f.kg_co2e_per_unit as kg_co2e,
  coalesce(o.emission_region, c.emission_region) as emission_region,
  u.datasource_type as commodity,
  u.company, u.site
from analytics.monthly_usage u
  left join ops.site_overrides o on o.site_id = u.site_id
  left join ops.company_overrides c on c.company_id = u.company_id
  join ops.emission_factors f on f.datasource_type = u.datasource_type
    and f.units = u.units
    and u.month >= f.valid_from
    and u.month < f.valid_to
    and (
      f.region = coalesce(o.emission_region, c.emission_region)
      or f.region = ''
        and not exists (
          select
          from ops.emission_factors own
          where own.region = coalesce(o.emission_region, c.emission_region)
            and own.datasource_type = f.datasource_type
            and own.units = f.units
            and own.scope = f.scope
            and own.method = f.method
            and own.version = f.version
            and u.month >= own.valid_from
            and u.month < own.valid_to
        )
    );
comment on view analytics.emissions_monthly is
  'Emissions of monthly_usage, with a row for each of your emission factors that applies.';
comment on column analytics.emissions_monthly.usage is 'Usage, each day counted once.';
comment on column analytics.emissions_monthly.units is 'Standard unit of usage.';
comment on column analytics.emissions_monthly.coverage is 'days_covered / days_in_month.';
comment on column analytics.emissions_monthly.scope is
  'Scope of the greenhouse gas protocol, 1 to 3.';
comment on column analytics.emissions_monthly.method is
  'location or market for scope 2, otherwise empty.';
comment on column analytics.emissions_monthly.version is
  'Set of factors. Never add emissions of several.';
comment on column analytics.emissions_monthly.emission_region is
  'Region that selects emission factors.';
