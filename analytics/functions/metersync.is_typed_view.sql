-- A typed view is recognised by the end of its comment, which only its owner can write.
-- That end never changes, as existing views have it.
create or replace function metersync.is_typed_view (relation oid) returns boolean language sql stable as $$
  select
    c.relkind = 'v'
    and coalesce(
      obj_description(c.oid, 'pg_class'),
      ''
    ) like '%Made from ops.field_catalogue by metersync views refresh.'
  from pg_class c
  where c.oid = relation
$$;
