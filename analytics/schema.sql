-- metersync migrate applies all files of this folder again whenever they change. It does so after
-- the migrations, in one transaction, so each statement has to be repeatable. This file comes
-- first, then each file after the files that create what it names, and comments last. Functions
-- that analysts call resolve names when they are created (begin atomic), because analysts cannot
-- use schema metersync. Functions that read history run with its owner's rights. Views that compute
-- much end with an order by a hash, which no index has and nobody needs. Postgres keeps sorted
-- rows, so a join can read them again. Without the order, a join whose other side is expected to
-- have one row, and has a thousand, would compute the view a thousand times.
create schema if not exists analytics;
comment on schema analytics is
  'Views for analysts over utility, history and ops: one view for each kind of question.';

create schema if not exists fields;
comment on schema fields is
  'A view for each resource with a column for each field that the service sends, and a view for '
  'each array of objects in it. Look in schema analytics first.';

-- Returns statements that restore the grants on a view and its columns; none if it does not exist.
create or replace function metersync.grants_on (view text) returns setof text
language sql stable as $$
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
  select format(
    'grant %s%s on %s to %s%s', g.privilege_type,
    case when g.column_name is not null then format(' (%I)', g.column_name) end,
    view,
    case g.grantee when 0 then 'public' else g.grantee::regrole::text end,
    case when g.is_grantable then ' with grant option' end
  )
  from granted g
  where g.grantee <> (select relowner from pg_class where oid = to_regclass(view))
$$;

-- Copies the comments of another relation's columns to a view's columns with the same names, unless
-- these already have a comment. The columns of a table always get the comment, because they may
-- still have the comment of an earlier version.
create or replace function metersync.copy_comments (source regclass, target regclass) returns void
language plpgsql as $$
declare
  silent record;
begin
  for silent in
    select t.attname, col_description(s.attrelid, s.attnum) as comment
    from pg_attribute t
      join pg_attribute s on s.attrelid = source
        and s.attname = t.attname
    where t.attrelid = target
      and t.attnum > 0
      and (
        col_description(t.attrelid, t.attnum) is null
        or exists (select from pg_class where oid = target and relkind = 'r')
      )
      and col_description(t.attrelid, t.attnum)
        is distinct from col_description(s.attrelid, s.attnum)
  loop
    execute format('comment on column %s.%I is %L', target, silent.attname, silent.comment);
  end loop;
end
$$;

-- Removes the comments of views' columns. Otherwise a comment that only an earlier version had
-- would stay.
create or replace function metersync.clear_comments (views text[]) returns void
language plpgsql as $$
declare
  commented record;
begin
  for commented in
    select c.oid::regclass as view, a.attname
    from unnest(views) as named (view)
      join pg_class c on c.oid = to_regclass(named.view)
      join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'v'
      and a.attnum > 0
      and col_description(c.oid, a.attnum) is not null
  loop
    execute format('comment on column %s.%I is null', commented.view, commented.attname);
  end loop;
end
$$;
