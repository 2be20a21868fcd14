-- First of all files: views of an earlier version are dropped by what it tells.

-- Statements that grant again what is granted on a view and on columns of it; none when it isn't there.
create or replace function metersync.grants_on(view text) returns setof text language sql stable as $$
  with granted as (
    select acl.*, null::name as column_name
    from pg_class c
      cross join lateral aclexplode(c.relacl) acl
    where c.oid = to_regclass(view)
    union all
    select acl.*, a.attname
    from pg_attribute a
      cross join lateral aclexplode(a.attacl) acl
    where a.attrelid = to_regclass(view)
      and a.attnum > 0
      and not a.attisdropped
  )
  select
    format(
      'grant %s%s on %s to %s%s',
      g.privilege_type,
      case when g.column_name is not null then format(' (%I)', g.column_name) end,
      view,
      case g.grantee when 0 then 'public' else g.grantee::regrole::text end,
      case when g.is_grantable then ' with grant option' end
    )
  from granted g
  where g.grantee <> (select relowner from pg_class where oid = to_regclass(view))
$$;
