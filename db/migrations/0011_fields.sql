-- The catalogue has what a view of a field needs. Code of 0.2 writes the other columns, and has to be stopped first:
-- see 0007. Views read the old table, and ops.contract_changes is a table that views of users may read: both are
-- dropped after the views were made again (db/migrate/apply-views.ts).
-- squawk-ignore-file renaming-table, ban-drop-table
drop trigger note_contract_changes on metersync.field_catalogue;

--> statement-breakpoint
drop trigger note_contract_changes_of_new on metersync.field_catalogue;

--> statement-breakpoint
drop function metersync.note_contract_changes();

--> statement-breakpoint
drop function metersync.enum_union(text[], text[]);

--> statement-breakpoint
alter table "metersync"."field_catalogue" rename to "old_field_catalogue";

--> statement-breakpoint
alter table "metersync"."old_field_catalogue"
rename constraint "field_catalogue_resource_api_version_path_pk" to "old_field_catalogue_pk";

--> statement-breakpoint
create table "metersync"."field_catalogue" (
  "resource" text not null,
  "api_version" text not null,
  "path" text not null,
  "types" text[] not null,
  "first_seen_at" timestamp(6) with time zone default clock_timestamp() not null,
  constraint "field_catalogue_resource_api_version_path_pk" primary key (
    "resource",
    "api_version",
    "path"
  )
);

--> statement-breakpoint
insert into metersync.field_catalogue (resource, api_version, path, types, first_seen_at)
select
  resource,
  api_version,
  path,
  case when collapsed and path <> '' then types || '{map}' else types end,
  first_seen_at
from metersync.old_field_catalogue;

--> statement-breakpoint
comment on table metersync.field_catalogue is 'What ops.field_catalogue shows.';
comment on column metersync.field_catalogue.resource is
  'documents, usageData, …; events/TYPE for payloads of events.';
comment on column metersync.field_catalogue.api_version is
  'Version of the API; webhooks for events.';
comment on column metersync.field_catalogue.path is
  'A JSON Pointer; * is any element of an array, ~2 an asterisk in a name, empty the record itself.';
comment on column metersync.field_catalogue.types is
  'Types of its values: boolean, number, decimal (a number as text), timestamp, date, uuid, text, object, array; map for an object whose fields are too many, or named by data.';
comment on column metersync.field_catalogue.first_seen_at is 'When a record first had it.';
