create or replace view analytics.sites as
with meter_addresses as (
  select company_id, site_id, min(nullif(raw ->> 'address', '')) as address
  from utility.meters
  where deleted_at is null
  group by company_id, site_id
)
select
  s.id as site_id,
  s.name as site,
  s.company_id,
  c.name as company,
  a.address, z.time_zone, z.time_zone_source,
  case
    when z.time_zone_source = 'default' then metersync.time_zone_of(a.address)
  end as proposed_time_zone,
  coalesce(o.emission_region, k.emission_region) as emission_region,
  o.floor_area, o.floor_area_units
from utility.sites s
  join analytics.site_time_zones z on z.site_id = s.id
  left join utility.companies c on c.id = s.company_id
  left join ops.site_overrides o on o.site_id = s.id
  left join ops.company_overrides k on k.company_id = s.company_id
  left join meter_addresses m on m.company_id = s.company_id
    and m.site_id = s.id
  cross join lateral (
    select coalesce(nullif(s.raw ->> 'address', ''), m.address) as address
    offset 0
  ) a
where s.deleted_at is null;
comment on view analytics.sites is
  'One row for each live site, with what you set for it (metersync sites).';
comment on column analytics.sites.address is 'Address of the site, or else of one of its meters.';
comment on column analytics.sites.proposed_time_zone is
  'If none is set, the zone of the state or province in the address.';
comment on column analytics.sites.emission_region is
  'Region that selects emission factors, of the site or else of the company.';
comment on column analytics.sites.floor_area_units is 'For example sq ft.';
