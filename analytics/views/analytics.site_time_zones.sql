-- The time zone in which the days of a site begin: the zone that was set for the site or for its
-- company, or UTC.
create or replace view analytics.site_time_zones as
select
  s.id as site_id,
  s.company_id,
  coalesce(o.time_zone, c.time_zone, 'UTC') as time_zone,
  case
    when o.time_zone is not null then 'site'
    when c.time_zone is not null then 'company'
    else 'default'
  end as time_zone_source
from utility.sites s
  left join ops.site_overrides o on o.site_id = s.id
  left join ops.company_overrides c on c.company_id = s.company_id;
comment on view analytics.site_time_zones is
  'Time zone of each site, which the service does not send.';
comment on column analytics.site_time_zones.time_zone_source is
  'site (ops.site_overrides), company (ops.company_overrides) or default (UTC).';
