create or replace view ops.field_catalogue as
select
  f.resource, f.api_version, f.path, f.types, f.first_seen_at, f.last_seen_at, f.records,
  round(f.records::numeric / nullif(root.records, 0), 4) as share,
  case when hidden.hidden then null else f.example end as example,
  case when hidden.hidden then null else nullif(f.enum_values, '{}') end as enum_values,
  f.collapsed
from metersync.field_catalogue f
  join metersync.field_catalogue root on root.resource = f.resource
    and root.api_version = f.api_version
    and root.path = ''
  cross join lateral (
    select f.path ~*
      'secret|password|passphrase|passcode|token|credential|api[-_ ]?key|security[-_ '
      ']?(question|answer)|mfa' as hidden
  ) hidden;
comment on view ops.field_catalogue is
  'Every field that a record ever had, by resource and version of the API.';
comment on column ops.field_catalogue.share is 'Share of the resource''s records that have it.';
select metersync.copy_comments('metersync.field_catalogue', 'ops.field_catalogue');
comment on column ops.field_catalogue.resource is
  'documents, usageData, …; rows events/TYPE are of version 0.1.0.';
