-- Analysts read the catalogue and may not read the journal: no value of an event is kept in it, nor shown of those that earlier versions
-- kept, nor one of a field whose name says that it may open something.
update metersync.field_catalogue set example = null, enum_values = null
where resource like 'events/%' and (example is not null or enum_values is not null);
delete from ops.contract_changes where resource like 'events/%' and change = 'value';

create or replace view ops.field_catalogue as
select f.resource, f.api_version, f.path, f.types, f.first_seen_at, f.last_seen_at, f.records,
  round(f.records::numeric / nullif(root.records, 0), 4) as share,
  case when hidden.hidden then null else f.example end as example,
  case when hidden.hidden then null else nullif(f.enum_values, '{}') end as enum_values,
  f.collapsed
from metersync.field_catalogue f
  join metersync.field_catalogue root
    on root.resource = f.resource and root.api_version = f.api_version and root.path = ''
  cross join lateral (
    select f.resource like 'events/%'
      or f.path ~* 'secret|password|passphrase|passcode|token|credential|api[-_ ]?key|security[-_ ]?(question|answer)|mfa' as hidden
  ) hidden;
comment on view ops.field_catalogue is 'Every field that a record was ever seen to have, for each resource and version of the API: what the service sends, learnt from what it sent.';
select metersync.comment_columns('ops.field_catalogue', jsonb_build_object('share', 'Share of the resource''s records that have it, as read.') || (
  select jsonb_object_agg(a.attname, col_description(a.attrelid, a.attnum)) from pg_attribute a
  where a.attrelid = 'metersync.field_catalogue'::regclass and a.attnum > 0));

create or replace view ops.typed_columns as
select c.view_name, c.name as column_name, v.resource, c.path, c.type,
  not exists (
    select from pg_attribute a
    where a.attrelid = to_regclass(format('analytics.%I', c.view_name)) and a.attname = c.name and a.atttypid = to_regtype(c.type)
  ) as is_narrow
from metersync.typed_columns c join metersync.typed_views v on v.name = c.view_name;
comment on view ops.typed_columns is 'Which field each column of the typed views of schema analytics shows.';
select metersync.comment_columns('ops.typed_columns', '{
  "view_name": "View of schema analytics.",
  "column_name": "Its column.",
  "resource": "Resource of the field.",
  "path": "The field, as in field_catalogue; /* of a record: all fields that have no column.",
  "type": "Type that holds every value that was seen.",
  "is_narrow": "Whether the column has a narrower type, as something was built on the view: other values show NULL there until metersync views refresh can widen it."
}');
