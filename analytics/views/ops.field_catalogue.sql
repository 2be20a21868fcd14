create or replace view ops.field_catalogue as
select resource, api_version, path, types, first_seen_at
from metersync.field_catalogue;
comment on view ops.field_catalogue is
  'Every field that a record ever had, by resource and version of the API.';
select metersync.copy_comments('metersync.field_catalogue', 'ops.field_catalogue');
comment on column ops.field_catalogue.resource is
  'documents, usageData, …; events/TYPE are rows of version 0.1.0.';
