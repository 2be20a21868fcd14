-- What the files of this folder make is made again whenever they change: by metersync migrate, after the migrations, all in one
-- transaction, this file first, then each after those that make what it names, comments last. So each statement can be repeated.
-- Functions that analysts call have their names resolved when they are made (begin atomic), as analysts may not look into schema
-- metersync; those that read history run with its owner's rights.
create schema if not exists analytics;

comment on schema analytics is
  'What analysts query: one view a question, over utility, history and ops.';

create schema if not exists fields;

comment on schema fields is
  'Each field that the service sends as a column: a view for each resource, for each object and for each array of objects in it. metersync makes them; analytics is what to ask first.';

-- Statements that grant again what is granted on a view and on columns of it; none when it isn't there.
create or replace function metersync.grants_on(view text)
returns setof text
language sql stable
as $$
  with
    granted as (
      select
        acl.*,
        null::name as column_name
      from pg_class c
        cross join lateral aclexplode(c.relacl) acl
      where c.oid = to_regclass(view)
      union all
      select
        acl.*,
        a.attname
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

-- Comments on the columns of a view, as {"column": "comment"}.
create or replace function metersync.comment_columns(relation regclass, comments jsonb)
returns void
language plpgsql
as $$
declare
  told record;
begin
  for told in select * from jsonb_each_text(comments) loop
    execute format('comment on column %s.%I is %L', relation, told.key, told.value);
  end loop;
end
$$;
