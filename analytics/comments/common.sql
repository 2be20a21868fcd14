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
      ('bill_id', 'Bill: the document.'),
      ('document_id', 'The same as bill_id, as records name it.'),
      ('datasource_type', 'Commodity, for example ELECTRICITY.'),
      ('commodity', 'The same as datasource_type.'),
      ('units', 'Unit of usage: the same as usage_units.'),
      ('currency', 'Currency of the amounts: never add those of several.'),
      ('period', 'Days, half-open.'),
      ('is_estimated', 'Whether it is estimated.'),
      ('created', 'When the service created the record.'),
      ('updated', 'When the service last changed the record.'),
      ('api_version', 'Version of the API that the record was read from.'),
      ('deleted_at', 'When metersync found that the service no longer has it.'),
      ('deleted_reason', 'How it found that.'),
      ('sites', 'Sites.'),
      ('meters', 'Meters.'),
      ('granularity_seconds', 'Length of the readings, in seconds.'),
      ('time_zone', 'Time zone that days and hours are of.'),
      ('time_zone_source', 'Where the time zone is from: see site_time_zones.')
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
