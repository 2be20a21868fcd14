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

create schema if not exists fields;
comment on schema fields is 'Each field that the service sends as a column: a view for each resource, for each object and for each array of objects in it. metersync makes them; analytics is what to ask first.';

-- A typed view is known by the end of its comment, which none but its owner can write. Views that
-- there are have it, so it never changes.
create or replace function metersync.is_typed_view(relation oid) returns boolean
language sql stable as $$
  select c.relkind = 'v'
    and coalesce(obj_description(c.oid, 'pg_class'), '')
      like '%Made from ops.field_catalogue by metersync views refresh.'
  from pg_class c
  where c.oid = relation
$$;

-- Earlier versions made them in schema analytics. Moved, they keep what was granted on them and
-- what was built on them.
do $$
declare
  former record;
begin
  for former in
    select relname as name
    from pg_class
    where relnamespace = 'analytics'::regnamespace
      and metersync.is_typed_view(oid)
  loop
    begin
      if to_regclass(format('fields.%I', former.name)) is null then
        execute format('alter view analytics.%I set schema fields', former.name);
      else
        -- A worker of that version made it again.
        execute format('drop view analytics.%I', former.name);
      end if;
    exception when dependent_objects_still_exist then
      null;
    end;
  end loop;
end
$$;

-- What stands at some steps within a JSON expression, as an expression of text or of JSON.
create or replace function metersync.within(item text, steps jsonb, as_text boolean) returns text
language sql immutable as $$
  select case
    when as_text and jsonb_array_length(steps) = 0 then format('(%s #>> ''{}'')', item)
    else format('(%s%s)', item, string_agg(arrow || quote_literal(step), '' order by place))
  end
  from jsonb_array_elements_text(steps) with ordinality as t (step, place)
    cross join lateral (
      select case
        when as_text and place = jsonb_array_length(steps) then ' ->> '
        else ' -> '
      end as arrow
    ) a
$$;

-- Makes a typed view of what db/fields/view-shape.ts describes: a projection of records, whatever
-- the description says. None but its owner can replace a view, and whoever owns one may have its
-- readers call any function: so the writer, who may not make views, calls this as the owner of them
-- all. With `anew` the view that there is goes first, and what was granted on it comes back.
-- Returns what was built on that view and keeps it: then nothing has changed.
create or replace function metersync.make_typed_view(shape jsonb, anew boolean) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $make$
declare
  view_name constant text := format('fields.%I', shape ->> 'name');
  about constant text :=
    (shape ->> 'comment') || ' Made from ops.field_catalogue by metersync views refresh.';
  item text := 'd.raw';
  lists text := '';
  level integer := 0;
  steps jsonb;
  part record;
  expressions text[] := '{}';
  grants text[] := '{}';
  built_on text;
begin
  if to_regclass(view_name) is not null
    and not metersync.is_typed_view(to_regclass(view_name))
  then
    raise exception '% is no typed view', view_name using errcode = 'wrong_object_type';
  end if;

  for steps in select list from jsonb_array_elements(shape -> 'lists') as list loop
    level := level + 1;
    lists := lists || format(
      E'\ncross join lateral jsonb_array_elements(metersync.elements%s)'
        ' with ordinality as e%s (value, position)',
      metersync.within(item, steps, false), level);
    item := format('e%s.value', level);
  end loop;
  item := metersync.within(item, shape -> 'at', false);

  for part in
    select
      c.*,
      metersync.within(item, coalesce(c.steps, '[]'), true) as text,
      metersync.within(item, coalesce(c.steps, '[]'), false) as json
    from jsonb_to_recordset(shape -> 'columns')
      as c (name text, type text, source text, level integer, steps jsonb)
  loop
    expressions := expressions || format('%s as %I', case part.type
      when 'record' then format('r.%I', part.source)
      when 'position' then format('e%s.position::integer', part.level)
      when 'others' then format('nullif(d.raw - %L::text[], ''{}'')',
        array(select jsonb_array_elements_text(part.steps)))
      when 'boolean' then format('metersync.boolean_of%s', part.text)
      when 'numeric' then format('metersync.numeric_of%s', part.json)
      when 'timestamptz' then format('metersync.time_of(%s, %L)', part.text, shape ->> 'zone')
      when 'date' then format('metersync.date_of%s', part.text)
      when 'uuid' then format('metersync.uuid_of%s', part.text)
      when 'text' then part.text
      when 'jsonb' then format('nullif(%s, ''null'')', part.json)
    end, part.name);
  end loop;

  if anew then
    grants := array(select metersync.grants_on(view_name));
    begin
      execute format('drop view %s', view_name);
    exception when dependent_objects_still_exist then
      get stacked diagnostics built_on = pg_exception_detail;
      return string_to_array(built_on, E'\n');
    end;
  end if;

  -- A record is unpacked once, rather than for each of its columns; not at all where none is asked
  -- for.
  execute format(
    $view$
      create or replace view %s as
      select %s
      from utility.%I r
        cross join lateral (select r.raw || '{}' as raw offset 0) d%s
      where r.deleted_at is null%s
    $view$,
    view_name,
    array_to_string(expressions, ', '),
    shape ->> 'table',
    lists,
    case when jsonb_array_length(shape -> 'at') > 0
      then format(' and jsonb_typeof%s = ''object''', item)
    end);
  execute format('comment on view %s is %L', view_name, about);
  for part in
    select *
    from jsonb_to_recordset(shape -> 'columns') as c (name text, comment text)
  loop
    execute format('comment on column %s.%I is %L', view_name, part.name, part.comment);
  end loop;
  for part in
    select rolname as name
    from pg_roles
    where rolname in ('metersync_analyst', 'metersync_writer')
  loop
    execute format('grant select on %s to %I', view_name, part.name);
  end loop;
  for part in select statement from unnest(grants) as statement loop
    execute part.statement;
  end loop;
  return '{}';
end
$make$;
revoke execute on function metersync.make_typed_view(jsonb, boolean) from public;
comment on table metersync.typed_views is
  'The typed views of schema fields, made from the field catalogue.';

create or replace view ops.typed_columns as
select c.view_name, c.name as column_name, v.resource, c.path, c.type,
  not exists (
    select from pg_attribute a
    where a.attrelid = to_regclass(format('fields.%I', c.view_name)) and a.attname = c.name and a.atttypid = to_regtype(c.type)
  ) as is_narrow
from metersync.typed_columns c join metersync.typed_views v on v.name = c.view_name;
comment on view ops.typed_columns is 'Which field each column of the typed views of schema fields shows.';
select metersync.comment_columns('ops.typed_columns', '{
  "view_name": "View of schema fields.",
  "column_name": "Its column.",
  "resource": "Resource of the field.",
  "path": "The field, as in field_catalogue; /* of a record: all fields that have no column.",
  "type": "Type that holds every value that was seen.",
  "is_narrow": "Whether the column has a narrower type, as something was built on the view: other values show NULL there until metersync views refresh can widen it."
}');
