import { expect, test } from 'vitest';
import { formatSqlFile } from '../../verify/sql-style.ts';

const cases: readonly (readonly [title: string, before: string, after: string])[] = [
  [
    'clauses that fit stand on a line each, conditions of a join below it',
    `select m.id, count(*) filter (where i.usage > 0) over (partition by m.id order by i.at) as used,
       extract(epoch from i.at) as second from meters m left join intervals i on i.meter_id = m.id
       and i.deleted_at is null where m.a = 1 and m.b = 2 group by m.id, m.a limit 1`,
    `select
  m.id,
  count(*) filter (where i.usage > 0) over (partition by m.id order by i.at) as used,
  extract(epoch from i.at) as second
from meters m
  left join intervals i on i.meter_id = m.id
    and i.deleted_at is null
where m.a = 1
  and m.b = 2
group by m.id, m.a
limit 1
`,
  ],
  [
    'steps stay on several lines, a query of all their columns goes on one',
    'with a as (select * from b where c), final as (select x, y from a) select * from final union all select * from a',
    `with
  a as (
    select *
    from b
    where c
  ),
  final as (
    select
      x,
      y
    from a
  )
select * from final
union all
select * from a
`,
  ],
  [
    'the first of several tables stands beside from, also when it is a query',
    `select 1 from (select x from b) c join d on d.x = c.x -- why
       and d.y = 1 where exists (select from e)`,
    `select 1
from (
  select x
  from b
) c
  join d on d.x = c.x -- why
    and d.y = 1
where exists (select from e)
`,
  ],
  [
    'a case of one condition goes on one line, and of several has their conditions below',
    `select case when a then b end as x, case when a and b then c when d then
       (array_agg(b order by c)) [1] else e end as y from t`,
    `select
  case when a then b end as x,
  case
    when a
      and b then c
    when d then (array_agg(b order by c))[1]
    else e
  end as y
from t
`,
  ],
  [
    'keys of JSON stand beside their values',
    `select jsonb_build_object('first_key', first_value_of_many, 'second_key', second_value_of_many, 'third', third_value)`,
    `select
  jsonb_build_object(
    'first_key', first_value_of_many,
    'second_key', second_value_of_many,
    'third', third_value
  )
`,
  ],
  [
    'the header of a function has a clause a line',
    `create or replace function f(a text, b text[] default array['x, y', '(']) returns table (c text, d integer)
       language sql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
select a, 1
$$;
create or replace function g(a text) returns text language sql stable begin atomic select a; end;
revoke execute on function f(text, text[]) from public;`,
    `create or replace function f(a text, b text[] default array['x, y', '('])
returns table (c text, d integer)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
  select
    a,
    1
$$;

create or replace function g(a text)
returns text
language sql stable
begin atomic
  select a;
end;

revoke execute on function f(text, text[]) from public;
`,
  ],
  [
    'a list of arguments longer than a line has one a line',
    `create function a_function_of_many_arguments(first_argument text, second_argument text[], third_argument integer) returns text language sql as $$
       select first_argument
     $$;`,
    `create function a_function_of_many_arguments(
  first_argument text,
  second_argument text[],
  third_argument integer
)
returns text
language sql
as $$
  select first_argument
$$;
`,
  ],
  [
    'a name that begins with an argument of a template stays one word',
    'create view {{of}}_all as select f.* from {{of}}_of(company) f where f.{{column}} = {{at}}',
    `create view {{of}}_all as
select f.*
from {{of}}_of(company) f
where f.{{column}} = {{at}}
`,
  ],
  [
    'comments of columns stand together, and a long one on a line of its own',
    `comment on column a.b is 'Short.';
comment on column a.a_column_with_a_long_name is 'What it holds, in a sentence that goes beyond the line.';`,
    `comment on column a.b is 'Short.';
comment on column a.a_column_with_a_long_name is
  'What it holds, in a sentence that goes beyond the line.';
`,
  ],
  [
    'literals, comments and bodies in PL/pgSQL stay as they are',
    `-- From  here,  and ) [1] too (SELECT)
select 'From  (
   where  x)', 'rows ) [1] f (a)';

create or replace function f() returns void language plpgsql as $$
begin
  PERFORM  1;

  return;
end
$$;`,
    `-- From  here,  and ) [1] too (SELECT)
select
  'From  (
   where  x)',
  'rows ) [1] f (a)';

create or replace function f()
returns void
language plpgsql
as $$
begin
  PERFORM  1;

  return;
end
$$;
`,
  ],
  [
    'a literal may go on in the next line, also in a body',
    `create or replace function f() returns text language sql as $$
    select 'The first part of a literal that goes on in '
  'the next line' as x
$$;
comment on function f is 'The first part of a comment that goes on in '
            'the next line.';`,
    `create or replace function f()
returns text
language sql
as $$
  select 'The first part of a literal that goes on in '
    'the next line' as x
$$;

comment on function f is
  'The first part of a comment that goes on in '
  'the next line.';
`,
  ],
  [
    'a line that is too long goes on below: at then, at an operator, or within its parentheses',
    `select case a when 'a condition of some more length' then a_function_of_some_length(and_its_first_argument, b)
      else c end, a_function_of_some_length(and_its_argument) - another_function_of_some_length(and_its_argument) as d,
      e from t where another_function_of_some_length(and_its_argument) not in ('one literal', 'another literal', 'c')`,
    `select
  case a
    when 'a condition of some more length'
      then a_function_of_some_length(and_its_first_argument, b)
    else c
  end,
  a_function_of_some_length(and_its_argument)
    - another_function_of_some_length(and_its_argument) as d,
  e
from t
where another_function_of_some_length(and_its_argument) not in (
  'one literal',
  'another literal',
  'c'
)
`,
  ],
];

test.each(cases)('%s', (_, before, after) => {
  expect(formatSqlFile(before)).toBe(after);
  expect(formatSqlFile(after)).toBe(after);
});
