-- Comments of columns that mean the same in every view. A view's own comment on its column takes
-- precedence. Views of other users are not changed.
do $$
declare
  silent record;
begin
  for silent in
    with common (name, comment) as (values
      ('company_id', 'Company.'),
      ('company', 'Name of the company.'),
      ('site_id', 'Site.'),
      ('site', 'Name of the site.'),
      ('meter_id', 'Meter.'),
      ('connection_id', 'Connection.'),
      ('bill_id', 'Bill: the document.'),
      ('datasource_type', 'Commodity, for example ELECTRICITY.'),
      ('commodity', 'The same as datasource_type.'),
      ('units', 'The same as usage_units.'),
      ('currency', 'Currency of the amounts. Never add amounts in different currencies.'),
      ('period', 'Days, half-open.'),
      ('first_day', 'First day of period.'),
      ('last_day', 'Last day of period.'),
      ('provider', 'Utility that sent the bill.'),
      ('account_number', 'Account number at the utility.'),
      ('invoice_id', 'The utility''s number of the bill.'),
      ('meter_number', 'Number of the meter at the utility.'),
      ('is_estimated', 'Is estimated.'),
      ('created', 'When the service created the record.'),
      ('updated', 'When the service last changed the record.'),
      ('api_version', 'Version of the API that it was read from, for example v2.2.'),
      ('deleted_at', 'When metersync found that it no longer exists; NULL while it exists. Values are kept.'),
      ('deleted_reason', 'event: a delete event; absent: complete, stable listings lack it; '
        'listed: among deleted ones; not_found: 404 of its own endpoint; '
        'document: its document is gone.'),
      ('sites', 'Sites.'),
      ('meters', 'Meters.'),
      ('granularity_seconds', 'Length in seconds.'),
      ('time_zone', 'IANA name of the zone of days and hours.'),
      ('time_zone_source', 'site (ops.site_overrides), company (ops.company_overrides) or default '
        '(UTC).')
    )
    select c.oid::regclass as relation, a.attname, common.comment
    from pg_class c
      join pg_attribute a on a.attrelid = c.oid
      join common on common.name = a.attname
    where c.relkind = 'v'
      and c.relnamespace in ('analytics'::regnamespace, 'ops'::regnamespace)
      and pg_has_role(c.relowner, 'usage')
      and a.attnum > 0
      and col_description(c.oid, a.attnum) is null
  loop
    execute format(
      'comment on column %s.%I is %L',
      silent.relation,
      silent.attname,
      silent.comment
    );
  end loop;
end
$$;
select
  metersync.copy_comments (
    ('analytics.' || months)::regclass,
    ('metersync.' || months || suffix)::regclass
  )
from
  unnest(array['monthly_usage', 'monthly_cost']) months,
  unnest(array['', '_now']) suffix;
select
  metersync.copy_comments ('analytics.connections_needing_attention', 'metersync.unwell_connections');
