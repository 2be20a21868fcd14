create or replace view ops.typed_columns as
select
  c.view_name,
  c.name as column_name,
  v.resource,
  c.path,
  c.type,
  not exists (
    select
    from
      pg_attribute a
    where
      a.attrelid = to_regclass(format('fields.%I', c.view_name))
      and a.attname = c.name
      and a.atttypid = to_regtype(c.type)
  ) as is_narrow
from
  metersync.typed_columns c
  join metersync.typed_views v on v.name = c.view_name;
comment on view ops.typed_columns is 'Which field each column of the typed views shows.';
comment on column ops.typed_columns.view_name is 'View name.';
comment on column ops.typed_columns.column_name is 'Column name.';
comment on column ops.typed_columns.resource is 'documents, usageData, …; events/TYPE for payloads of events.';
comment on column ops.typed_columns.path is 'As in field_catalogue; /* of a record: all fields without a column.';
comment on column ops.typed_columns.type is 'Type that holds every value that was seen.';
comment on column ops.typed_columns.is_narrow is 'Whether other values show NULL, as a view of yours keeps the column from widening.';
