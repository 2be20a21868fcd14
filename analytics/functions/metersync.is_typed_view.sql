-- A typed view is known by the end of its comment, which none but its owner can write. Views that
-- there are have it, so it never changes.
create or replace function metersync.is_typed_view(relation oid)
returns boolean
language sql stable
as $$
  select
    c.relkind = 'v'
    and coalesce(obj_description(c.oid, 'pg_class'), '') like '%Made from ops.field_catalogue by metersync views refresh.'
  from pg_class c
  where c.oid = relation
$$;
