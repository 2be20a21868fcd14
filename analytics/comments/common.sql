-- Columns that mean the same wherever they stand. A view's own comment on its column goes first.
do $$
declare
  silent record;
begin
  for silent in
    with common (name, comment) as (values
      ('company_id', 'Company.'),
      ('site_id', 'Site.'),
      ('meter_id', 'Meter.'),
      ('connection_id', 'Connection.'),
      ('bill_id', 'Bill.'),
      ('document_id', 'The same as bill_id.'),
      ('datasource_type', 'Commodity: ELECTRICITY, …'),
      ('commodity', 'The same as datasource_type.'),
      ('units', 'The same as usage_units.'),
      ('currency', 'Currency of the amounts.'),
      ('period', 'Days, half-open.'),
      ('is_estimated', 'Is estimated.'),
      ('created', 'When the service created the record.'),
      ('updated', 'When the service last changed the record.'),
      ('api_version', 'Version of the API that it was read from.'),
      ('deleted_at', 'When metersync found it gone; NULL while it lives.'),
      ('deleted_reason', 'event: a delete event; absent: listings lack it; listed: as deleted; '
        'not_found: 404; document: its document is gone.'),
      ('sites', 'Sites.'),
      ('meters', 'Meters.'),
      ('granularity_seconds', 'Length in seconds.'),
      ('time_zone', 'IANA zone of days and hours.'),
      ('time_zone_source', 'site (ops.site_overrides), company (ops.company_overrides) or default (UTC).')
    )
    select c.oid::regclass as relation, a.attname, common.comment
    from pg_class c
      join pg_attribute a on a.attrelid = c.oid
      join common on common.name = a.attname
    where c.relkind = 'v'
      and c.relnamespace in ('analytics'::regnamespace, 'ops'::regnamespace)
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
