-- What the files of this folder make is made again whenever they change: by metersync migrate, after the migrations, all
-- in one transaction and in the order of their names. So each statement here can be repeated. Functions that analysts call have their
-- names resolved when they are made (begin atomic), as analysts may not look into schema metersync; those that read
-- history run with its owner's rights.
create schema if not exists analytics;
comment on schema analytics is 'What analysts query: one view a question, over utility, history and ops.';

-- Comments on the columns of a view, as {"column": "comment"}.
create or replace function metersync.comment_columns(relation regclass, comments jsonb) returns void
language plpgsql as $$
declare
  told record;
begin
  for told in select * from jsonb_each_text(comments) loop
    execute format('comment on column %s.%I is %L', relation, told.key, told.value);
  end loop;
end
$$;

-- The share of an amount that falls on some of its days: those after the first `before` of `total`, up to `through`.
-- Sums of whole days are rounded, not the days, and the last share is what is left: all shares add up to the amount
-- exactly, for any cut of the days.
create or replace function metersync.share(amount numeric, before integer, through integer, total integer, places integer)
returns numeric language sql immutable parallel safe as $$
  select case when through >= total then amount else round(amount * through / total, places) end
    - case when before <= 0 then 0 else round(amount * before / total, places) end
$$;

-- An amount that views can multiply and add up: more than a hundred digits before or after the point are no meter's, and two
-- factors beyond that no numeric holds, so that one record would make views fail for everybody. Its record and its column keep it.
create or replace function metersync.amount(value numeric) returns numeric language sql immutable parallel safe as $$
  select case when value between -1e100 and 1e100 and scale(value) <= 100 then value end
$$;

-- Days in a multirange of dates. Strict, as most callers have none: NULL costs no call.
create or replace function metersync.days_in(days datemultirange) returns integer language sql immutable parallel safe strict as $$
  select coalesce(sum(upper(part) - lower(part))::integer, 0) from unnest(days) as part
$$;

-- The first and the last day that dates of the service mean, half-open: swapped when they are inverted, one day when
-- one is missing. A period that no bill has (ten years) is not spread: it counts on its last day. A year of more than four digits, or
-- before the first, is a slip, and what is far beyond them no timestamp holds: such dates are none.
create or replace function metersync.first_day(start_date date, end_date date) returns date
language sql immutable parallel safe as $$
  select case
    when least(start_date, end_date) < '0001-01-01' or greatest(start_date, end_date) > '9999-12-31' then null
    when abs(end_date - start_date) > 3660 then greatest(start_date, end_date)
    else least(start_date, end_date)
  end
$$;

create or replace function metersync.last_day(start_date date, end_date date) returns date
language sql immutable parallel safe as $$
  select case when least(start_date, end_date) >= '0001-01-01' and greatest(start_date, end_date) <= '9999-12-31'
    then greatest(start_date, end_date) end
$$;

-- A time of the service where it is one, else NULL: one odd value of a record must not make a view unreadable. Without a zone it is
-- one of UTC, whatever zone the reader is in.
create or replace function metersync.time_of(value text) returns timestamptz language sql stable parallel safe
begin atomic
  select case when metersync.date_of(value) is not null
    and value ~ '^.{10}([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-](0\d|1[0-4])(:?[0-5]\d)?)?)?$'
    then (value || case when substr(value, 11) ~ '[Z+-]' then '' else 'Z' end)::timestamptz end;
end;

-- The first moment of a local day. Where the clocks skip midnight, "at time zone" gives the moment of the change, which is
-- it; where they fall back into it, the second midnight, so what the clock showed just before is taken off: a day begins at the
-- first moment whose local date it is, and after which no earlier date comes. (At 00:01 St. John's fell back to 23:01: its day
-- began with the second midnight.)
create or replace function metersync.day_start(day date, zone text) returns timestamptz language sql stable parallel safe as $$
  select day::timestamp at time zone zone - greatest(interval '0', (day::timestamp at time zone zone - interval '1 microsecond')
    at time zone zone + interval '1 microsecond' - day::timestamp)
$$;
