-- Makes a typed view from what db/fields/view-shape.ts describes.
-- It is a projection of records for any description.
-- Only its owner can replace a view, and the owner of one can make its readers call any function.
-- So the writer, who may not make views, calls this, which runs as the owner of all of them.
-- With `anew` an existing view is dropped first, and its grants are restored.
-- If other views depend on it, nothing changes, and they are returned.
create or replace function metersync.make_typed_view (shape jsonb, anew boolean) returns text[] language plpgsql security definer
set
  search_path = pg_catalog,
  pg_temp as $make$
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
revoke
execute on function metersync.make_typed_view (jsonb, boolean)
from
  public;
