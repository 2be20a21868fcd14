-- How the texts of records are read, here and nowhere else. Each function returns NULL for a text
-- that it cannot read, in any version and setting of Postgres, and never fails: one unusable value
-- must not cost its record. contract/value-texts.ts has the same grammar for TypeScript.
--
-- A number: ASCII digits with an optional sign, decimal point and exponent, between ASCII white
-- space. At most 1,000 characters and four digits of exponent, which numeric always holds.
create function metersync.read_number(value text)
returns numeric
language sql immutable parallel safe
begin atomic
  select
    case
      when length(value) <= 1000
        and value ~ '^[ \t\n\v\f\r]*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,4})?[ \t\n\v\f\r]*$' then value::numeric
    end;
end;

--> statement-breakpoint
-- A number of JSON is exact, however many digits it has.
create function metersync.read_number(value jsonb)
returns numeric
language sql immutable parallel safe
begin atomic
  select
    case jsonb_typeof(value)
      when 'number' then value::numeric
      when 'string' then metersync.read_number(value #>> '{}')
    end;
end;

--> statement-breakpoint
-- The same for views and columns that are computed with: of a size whose products and sums numeric
-- holds. Analysts call it through views and may not use the schema, so its names are resolved when
-- it is made.
create or replace function metersync.number_of(value text)
returns numeric
language sql immutable parallel safe
begin atomic
  select
    case
      when length(value) <= 200
        and value !~ '[eE][-+]?[0-9]{3}' then metersync.read_number(value)
    end;
end;

--> statement-breakpoint
-- A time: a date that exists, optionally with hours and minutes, seconds, their fraction and a zone
-- (ISO 8601); or Unix seconds. What is finer than a microsecond is cut off and not rounded: an event
-- may have a time more precise than its record's, which must not make that count as older.
-- Of each kind of text the usual one is recognized first: Postgres matches it in half the time, as
-- its patterns have fewer states.
create or replace function metersync.read_time(value text)
returns timestamptz
language sql stable parallel safe
begin atomic
  select
    case
      when value like '____-__-__T__:__:__%'
        and length(value) <= 26
        and value not like '0000%'
        and value ~ '^[0-9]+-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?Z?$' then value::timestamptz
      when value ~ '^[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-9])|(0[13-9]|1[0-2])-30|(0[13578]|1[02])-31)([T ](([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9](\.[0-9]+)?|60(\.0+)?))?|24:00(:00(\.0+)?)?)(Z|[-+](0[0-9]|1[0-5])(:?[0-5][0-9])?)?)?$'
        and value not like '0000%'
        and (
          value not like '____-02-29%'
          or metersync.date_of(value) is not null
        ) then regexp_replace(value, '(\.[0-9]{6})[0-9]+', '\1')::timestamptz
      when value ~ '^[0-9]{9,11}$' then to_timestamp(value::bigint)
    end;
end;

--> statement-breakpoint
-- The date of such a text, as it is written, whatever its zone.
create function metersync.read_date(value text)
returns date
language sql stable parallel safe
begin atomic
  select
    case
      when length(value) = 10
        and value not like '0000%'
        and value ~ '^[0-9]+-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$' then value::date
      when length(value) = 10
        or metersync.read_time(value) is not null then metersync.date_of(value)
    end;
end;

--> statement-breakpoint
-- However a UUID is spelled: in capitals, without hyphens, in braces.
create or replace function metersync.uuid_of(value text)
returns uuid
language sql immutable parallel safe
begin atomic
  select
    case
      when value like '________-____-____-____-____________'
        and length(replace(value, '-', '')) = 32
        and value ~ '^[0-9a-f-]+$' then value::uuid
      when value ~ '^(\{[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}|[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7})$'
        then value::uuid
    end;
end;

--> statement-breakpoint
-- A reference is an object with an id, or the id itself.
create or replace function metersync.id_of(value jsonb)
returns text
language sql immutable parallel safe
begin atomic
  select
    case jsonb_typeof(value)
      when 'object' then value ->> 'id'
      else value #>> '{}'
    end;
end;

--> statement-breakpoint
alter table "utility"."companies"
add column "unreadable" jsonb;

--> statement-breakpoint
alter table "utility"."connections"
add column "unreadable" jsonb;

--> statement-breakpoint
alter table "utility"."documents"
add column "unreadable" jsonb;

--> statement-breakpoint
alter table "utility"."intervals"
add column "unreadable" jsonb;

--> statement-breakpoint
alter table "utility"."meters"
add column "unreadable" jsonb;

--> statement-breakpoint
alter table "utility"."sites"
add column "unreadable" jsonb;

--> statement-breakpoint
alter table "utility"."usage_data"
add column "unreadable" jsonb;

--> statement-breakpoint
alter table "metersync"."runs"
add column "values_unreadable" bigint default 0 not null;

--> statement-breakpoint
create index "companies_unreadable" on "utility"."companies" using btree("id")
where unreadable is not null;

--> statement-breakpoint
create index "connections_unreadable" on "utility"."connections" using btree("company_id")
where unreadable is not null;

--> statement-breakpoint
create index "documents_unreadable" on "utility"."documents" using btree("company_id")
where unreadable is not null;

--> statement-breakpoint
create index "meters_unreadable" on "utility"."meters" using btree("company_id")
where unreadable is not null;

--> statement-breakpoint
create index "sites_unreadable" on "utility"."sites" using btree("company_id")
where unreadable is not null;

--> statement-breakpoint
create index "usage_data_unreadable" on "utility"."usage_data" using btree("company_id")
where unreadable is not null;

--> statement-breakpoint
comment on column utility.companies.unreadable is
  'Fields that could not be read, each with its text, at most 200 characters; NULL for none.';

--> statement-breakpoint
comment on column utility.connections.unreadable is
  'Fields that could not be read, each with its text, at most 200 characters; NULL for none.';

--> statement-breakpoint
comment on column utility.documents.unreadable is
  'Fields that could not be read, each with its text, at most 200 characters; NULL for none.';

--> statement-breakpoint
comment on column utility.intervals.unreadable is
  'Fields that could not be read, each with its text, at most 200 characters; NULL for none.';

--> statement-breakpoint
comment on column utility.meters.unreadable is
  'Fields that could not be read, each with its text, at most 200 characters; NULL for none.';

--> statement-breakpoint
comment on column utility.sites.unreadable is
  'Fields that could not be read, each with its text, at most 200 characters; NULL for none.';

--> statement-breakpoint
comment on column utility.usage_data.unreadable is
  'Fields that could not be read, each with its text, at most 200 characters; NULL for none.';

--> statement-breakpoint
comment on column metersync.runs.values_unreadable is
  'Values of the records read that no column holds: see unreadable in the tables of utility.';

--> statement-breakpoint
comment on column ops.data_issues.entity_type is
  'document, usage, meter, connection, company or site.';

--> statement-breakpoint
-- Usage that was refused with its document: the next read of the document stores what it lists.
delete from metersync.rejected_records
where resource = 'usageData'
  and starts_with(record_id, 'of document ');
