-- Reads a time of the service; NULL if it is not a time, because one odd value must not break a
-- view. A time without a zone is in UTC, whatever the time zone of the session.
create or replace function metersync.time_of (value text) returns timestamptz
language sql stable parallel safe
begin atomic
  select case
    when metersync.date_of(value) is not null
      and value ~
        '^.{10}([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-](0\d|1[0-4])(:?[0-5]\d)?)?)?$'
      then (value || case when substr(value, 11) ~ '[Z+-]' then '' else 'Z' end)::timestamptz
  end;
end;

-- Reads an ISO 8601 time; NULL if the text is not such a time. A time without a zone is in the
-- given time zone.
create or replace function metersync.time_of (value text, zone text) returns timestamptz
language sql stable parallel safe
begin atomic
  select case
    when metersync.date_of(value) is null
      or substr(value, 11) !~
        '^[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[-+](0\d|1[0-4])(:?[0-5]\d)?)?$'
      then null
    when substr(value, 11) ~ '[-Z+]' then value::timestamptz
    else value::timestamp at time zone zone
  end;
end;
