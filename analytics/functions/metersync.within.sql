-- Returns an SQL expression for the value at some steps within a JSON expression.
create or replace function metersync.within (item text, steps jsonb, as_text boolean) returns text language sql immutable as $$
  select
    case
      when as_text
        and jsonb_array_length(steps) = 0 then format('(%s #>> ''{}'')', item)
      else format('(%s%s)', item, string_agg(arrow || quote_literal(step), '' order by place))
    end
  from jsonb_array_elements_text(steps) with ordinality as t(step, place)
    cross join lateral (
      select
        case
          when as_text
            and place = jsonb_array_length(steps) then ' ->> '
          else ' -> '
        end as arrow
    ) a
$$;
