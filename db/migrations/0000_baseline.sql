-- The schema of a new warehouse. In a warehouse of 0.2, upgrade_from_0_2.sql runs instead, together
-- with the functions, triggers and comments of this file, which can be repeated. Later migrations
-- apply to both.
-- squawk-ignore-file require-concurrent-index-creation
create schema utility;
create schema history;
create schema metersync;
create schema ops;

--> statement-breakpoint
comment on schema utility is 'Each record as the service sent it last.';
comment on schema history is
  'Earlier states of each record: what utility said from valid_from until valid_to.';
comment on schema metersync is
  'The pipeline''s own state: the journal of events, runs, what was refused.';
comment on schema ops is
  'What analysts may see of the pipeline, and what you set: overrides, factors.';

--> statement-breakpoint
-- As before, in a third of the time: without a cast that depends on the session's DateStyle it is
-- made part of the statement.
create or replace function metersync.date_of(value text)
returns date
language sql immutable parallel safe
as $$
  select
    case
      when value ~ '^[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)([T ]|$)'
        and substr(value, 1, 4) <> '0000'
        or value ~ '^([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29([T ]|$)' then make_date(substr(value, 1, 4)::int, substr(value, 6, 2)::int, substr(value, 9, 2)::int)
    end
$$;

--> statement-breakpoint
-- A time: a date that exists, optionally with hours and minutes, seconds, their fraction and a zone
-- (ISO 8601); or Unix seconds. What is finer than a microsecond is cut off and not rounded: an
-- event may have a time more precise than its record's, which must not make that count as older. Of
-- each kind of text the usual one is recognized first: Postgres matches it in half the time, as its
-- patterns have fewer states.
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
-- What should be an array and isn't counts as empty: one odd record must not make its page
-- unreadable.
create or replace function metersync.elements(value jsonb)
returns jsonb
language sql immutable parallel safe
as $$
  select case when jsonb_typeof(value) = 'array' then value else '[]'::jsonb end
$$;

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
create or replace function metersync.text_array(value jsonb)
returns text[]
language sql immutable parallel safe
as $$
  select coalesce(array_agg(item order by place), '{}')
  from jsonb_array_elements_text(metersync.elements(value)) with ordinality as t(item, place)
$$;

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
create or replace function metersync.boolean_of(value text)
returns boolean
language sql immutable parallel safe
as $$
  select
    case lower(value)
      when 'true' then true
      when 'false' then false
    end
$$;

--> statement-breakpoint
-- How the texts of records are read, here and nowhere else. Each function returns NULL for a text
-- that it cannot read, in any version and setting of Postgres, and never fails: one unusable value
-- must not cost its record. contract/value-texts.ts has the same grammar for TypeScript.
--
-- A number: ASCII digits with an optional sign, decimal point and exponent, between ASCII white
-- space. At most 1,000 characters and four digits of exponent, which numeric always holds.
create or replace function metersync.read_number(value text)
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
create or replace function metersync.read_number(value jsonb)
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
-- Postgres's own words (time zone "..." not recognized) say more than a violated constraint would.
create or replace function metersync.is_time_zone(name text)
returns boolean
language sql immutable parallel safe
as $$
  select
    name is null
    or timezone(name, timestamptz '2000-01-01 00:00Z') is not null
$$;

--> statement-breakpoint
-- Texts of both, the first as it is when it has all of the second's.
create or replace function metersync.union_of(known text[], more text[])
returns text[]
language sql immutable parallel safe
as $$
  select
    case
      when more <@ known then known
      else known || array(
        select unnest(more)
        except
        select unnest(known)
        order by 1
      )
    end
$$;

--> statement-breakpoint
-- Readings of any year may come, and a partition of each of their months would take more locks than
-- a server has. Months within this span have one each; what lies before and after it stands in two
-- partitions of their own.
create or replace function metersync.interval_months()
returns tstzrange
language sql immutable parallel safe
as $$
  select '[2000-01-01 00:00:00+00,2050-01-01 00:00:00+00)'::tstzrange
$$;

--> statement-breakpoint
-- An id that may be any text: of a UUID its one spelling.
create or replace function metersync.canonical_id(value text)
returns text
language sql immutable parallel safe
as $$
  select coalesce(metersync.uuid_of(value)::text, value)
$$;

--> statement-breakpoint
-- Keeps the state that a change ends, in the transaction of the change. It ends for an event that
-- waits for the record or that came in this transaction, else for the run that is reading the
-- company. The argument is the resource. The columns are named one by one, so that a column which a
-- table gets later is kept only on purpose.
--
-- The statement has the same text for all tables, and a session plans it once for each. Plans for
-- the parameters would be made anew at each write, which tripled the cost of a document that an
-- event changed. However many rows there are, old and new ones are joined by a hash: a kept plan
-- cannot know.
create or replace function metersync.keep_history()
returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
  of_resource text := TG_ARGV[0];
begin
  if not exists (select from old_rows) then
    return null;
  end if;
  insert into metersync.earlier_states (
    resource, id, company_id, site_id, document_id, revised_document_id, meter_id,
    external_id, public_id, name, datasource, status, url, account_id, datasource_type,
    start_date, end_date, usage, usage_units,
    is_estimated, exclusion, net_metering_type, billed_demand,
    created, updated, raw_updated, usage_read_at,
    raw, api_version, first_synced_at, synced_at, deleted_at, deleted_reason,
    valid_from, valid_to, ended_by_kind, ended_by
  )
  with
    -- The columns that not every table has. A name that old_rows or new_rows lacks means such a
    -- NULL.
    lacking as not materialized (
      select
        null::uuid as company_id,
        null::uuid as site_id,
        null::uuid as document_id,
        null::uuid as revised_document_id,
        null::text as meter_id,
        null::text as external_id,
        null::text as public_id,
        null::text as name,
        null::text as datasource,
        null::text as status,
        null::text as url,
        null::text as account_id,
        null::text as datasource_type,
        null::date as start_date,
        null::date as end_date,
        null::numeric as usage,
        null::text as usage_units,
        null::boolean as is_estimated,
        null::boolean as exclusion,
        null::text as net_metering_type,
        null::numeric as billed_demand,
        null::timestamptz as created,
        null::timestamptz as updated,
        null::timestamptz as raw_updated,
        null::timestamptz as usage_read_at
    ),
    before as (
      select o.*
      from lacking
        cross join lateral (
          select
            id, company_id, site_id, document_id, revised_document_id, meter_id,
            external_id, public_id, name, datasource, status, url, account_id, datasource_type,
            start_date, end_date, usage, usage_units,
            is_estimated, exclusion, net_metering_type, billed_demand,
            created, updated, raw_updated, usage_read_at,
            raw, api_version, first_synced_at, synced_at, deleted_at, deleted_reason
          from old_rows
        ) o
    ),
    after as (
      select n.*
      from lacking
        cross join lateral (
          select
            id, company_id, site_id, document_id, meter_id,
            external_id, public_id, name, datasource, status, url, account_id, datasource_type,
            start_date, end_date, usage, usage_units,
            raw, api_version, deleted_at
          from new_rows
        ) n
    ),
    ended as (
      select
        o.*,
        case when of_resource <> 'meters' then o.id::text::uuid end as record,
        case when of_resource = 'meters' then o.id::text end as meter,
        case
          when of_resource in ('connections', 'documents') then o.id::text
          when of_resource = 'usageData' then o.document_id::text
        end as named
      from before o
        join after n using (id)
      where (
          o.company_id, o.site_id, o.document_id, o.meter_id,
          o.external_id, o.public_id, o.name, o.datasource, o.status, o.url,
          o.account_id, o.datasource_type,
          o.start_date, o.end_date, o.usage, o.usage_units,
          o.raw, o.api_version, o.deleted_at
        ) is distinct from (
          n.company_id, n.site_id, n.document_id, n.meter_id,
          n.external_id, n.public_id, n.name, n.datasource, n.status, n.url,
          n.account_id, n.datasource_type,
          n.start_date, n.end_date, n.usage, n.usage_units,
          n.raw, n.api_version, n.deleted_at
        )
    ),
    begun as (
      select
        ended.*,
        case
          when ended.named is not null then (
            select e.id
            from metersync.journal e
            where e.record_id = ended.named
              and e.recorded_at >= least(now(), (
                select min(p.recorded_at)
                from metersync.journal p
                where p.record_id = ended.named
                  and p.outcome = 'pending'
              ))
            order by e.recorded_at desc
            limit 1
          )
        end as event,
        (
          select r.run_id::text
          from metersync.runs r
          where r.company_id = case
              when of_resource = 'companies' then ended.record
              else ended.company_id
            end
            and r.state = 'running'
          order by r.started_at desc
          limit 1
        ) as run,
        coalesce(
          case
            when of_resource = 'meters' then (
              select max(h.valid_to)
              from metersync.earlier_states h
              where h.meter_id = ended.meter
                and h.resource = 'meters'
            )
            else (
              select max(h.valid_to)
              from metersync.earlier_states h
              where h.id = ended.record
                and h.resource = of_resource
            )
          end,
          first_synced_at
        ) as began,
        (select clock_timestamp()) as at
      from ended
    )
  select
    of_resource, record, company_id, site_id, document_id, revised_document_id,
    coalesce(meter, meter_id),
    external_id, public_id, name, datasource, status, url, account_id, datasource_type,
    start_date, end_date, usage, usage_units,
    is_estimated, exclusion, net_metering_type, billed_demand,
    created, updated, raw_updated, usage_read_at,
    raw, api_version, first_synced_at, synced_at, deleted_at, deleted_reason,
    began,
    greatest(at, began),
    case when event is not null then 'event' when run is not null then 'run' end,
    coalesce(event, run)
  from begun;
  return null;
end
$$;

--> statement-breakpoint
-- The log of operations: a row is finished once, and nothing else of it changes.
create or replace function metersync.keep_operation()
returns trigger
language plpgsql
as $$
begin
  if TG_OP = 'UPDATE'
    and old.outcome is null
    and new.outcome is not null
    and (new.id, new.at, new.actor, new.role, new.source, new.action, new.target)
      = (old.id, old.at, old.actor, old.role, old.source, old.action, old.target)
  then
    return new;
  end if;
  raise exception 'metersync.operations is a log: its rows are finished once, and stay';
end
$$;

--> statement-breakpoint
-- Settings of sites and units are part of the checks' input. Whoever changes them needs no right to
-- the checks.
create or replace function metersync.check_all_again()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from metersync.data_checks;
  return null;
end
$$;

--> statement-breakpoint
-- Notes the companies whose records changed, in the transaction of the change. Records of other
-- companies may name a record that is deleted, or one without a company: these concern all. So do
-- the first meters of all, as no record needs its meter until then, and what is no record.
create or replace function metersync.note_changes()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  is_first boolean := false;
begin
  if TG_NARGS = 0 or TG_OP = 'TRUNCATE' then
    insert into metersync.company_changes (company_id) values (null);
  elsif TG_OP = 'INSERT' then
    if TG_TABLE_NAME = 'meters' then
      select bool_or(company_id is null) or count(*) > 0 and count(*) = (
        select count(*) from (
          select from utility.meters order by id limit (select count(*) + 1 from new_rows)
        ) there)
      into is_first from new_rows;
    end if;
    insert into metersync.company_changes (company_id)
    select distinct company_id from new_rows where company_id is not null
    union all
    select null where is_first;
  elsif exists (select from old_rows) then
    insert into metersync.company_changes (company_id) values (null);
  end if;
  return null;
end
$$;

--> statement-breakpoint
-- The date of such a text, as it is written, whatever its zone.
create or replace function metersync.read_date(value text)
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
-- When the service last changed a record, as the record says. Inlined into a statement, the
-- function for times would look up the field once for each form of a time: 26 µs for a document of
-- 4 kB instead of 8.
create or replace function metersync.updated_of(record jsonb)
returns timestamptz
language plpgsql stable parallel safe
as $$
declare
  sent text := record ->> 'updated';
begin
  return metersync.read_time(sent);
end
$$;

--> statement-breakpoint
-- The text of a field that no column holds, for the column unreadable; NULL for a blank text.
-- Postgres 15 takes the escape \v for the letter v, so the tab is written as \x0b.
create or replace function metersync.unread_text(sent text, is_read boolean)
returns text
language sql immutable parallel safe
begin atomic
  select
    case
      when sent <> ''
        and not is_read then nullif(left(btrim(sent, e' \t\n\x0b\f\r'), 200), '')
    end;
end;

--> statement-breakpoint
-- The id of a part of a record if it is not a UUID. A part with such an id has no row.
create or replace function metersync.odd_id(sent text)
returns text
language sql immutable parallel safe
begin atomic
  select
    case
      when sent <> ''
        and metersync.uuid_of(sent) is null then sent
    end;
end;

--> statement-breakpoint
-- A text for an indexed column: NULL if it is too long, because Postgres refuses entries of 2,704
-- bytes.
create or replace function metersync.indexable(sent text)
returns text
language sql immutable parallel safe
begin atomic
  select case when length(sent) <= 500 then sent end;
end;

--> statement-breakpoint
-- The company that a record, or the document in a usage record, names.
create or replace function metersync.company_sent(record jsonb)
returns text
language sql immutable parallel safe
begin atomic
  select coalesce(
      metersync.id_of(record -> 'company'),
      metersync.id_of(record #> '{document,company}')
    );
end;

--> statement-breakpoint
-- The document that a usage record names.
create or replace function metersync.document_sent(record jsonb)
returns text
language sql immutable parallel safe
begin atomic
  select coalesce(metersync.id_of(record -> 'document'), record ->> 'documentId');
end;

--> statement-breakpoint
-- Fields with their texts as JSON; NULL if there are none.
create or replace function metersync.unreadable_of(fields jsonb)
returns jsonb
language sql immutable parallel safe
begin atomic
  select nullif(jsonb_strip_nulls(fields), '{}');
end;

--> statement-breakpoint
-- Adds the texts of a record that were replaced to its fields that could not be read.
create or replace function metersync.with_replaced(unread jsonb, replaced jsonb)
returns jsonb
language sql immutable parallel safe
begin atomic
  select
    case
      when replaced is null then unread
      else coalesce(unread, '{}') || replaced
    end;
end;

--> statement-breakpoint
-- What the columns of a row say if its record is as given. Each function never fails: an odd value
-- costs its column, and not the record. They are in PL/pgSQL, because for each row a trigger would
-- plan the functions of SQL again that are not made part of a statement. Each text is taken from
-- the record once. Few records have an odd value, so unreadable is built only if a text has no
-- value: then there are more NULLs among the values. In most records both times are the same. Then
-- they are read once, because reading a time costs 6 µs.
create or replace function metersync.read_company(
  record jsonb,
  out external_id text,
  out public_id text,
  out name text,
  out unreadable jsonb
)
language plpgsql stable parallel safe
as $$
declare
  id_sent text := record ->> 'externalId';
  name_sent text := record ->> 'name';
  parts jsonb := metersync.elements(record -> 'sites');
  part_id text;
  odd_part text;
begin
  external_id := metersync.indexable(id_sent);
  public_id := record ->> 'publicId';
  name := metersync.indexable(name_sent);
  for at in 0 .. jsonb_array_length(parts) - 1 loop
    part_id := coalesce(parts -> at ->> 'id', (parts -> at)::text);
    odd_part := metersync.odd_id(part_id);
    exit when odd_part is not null;
  end loop;
  if odd_part is not null
    or num_nulls(id_sent, name_sent) < num_nulls(external_id, name)
  then
    unreadable := metersync.unreadable_of(jsonb_build_object(
      'externalId', metersync.unread_text(id_sent, external_id is not null),
      'name', metersync.unread_text(name_sent, name is not null),
      'sites', metersync.unread_text(odd_part, false)
    ));
  end if;
end
$$;

--> statement-breakpoint
create or replace function metersync.read_site(record jsonb, out name text, out unreadable jsonb)
language plpgsql stable parallel safe
as $$
begin
  name := record ->> 'name';
end
$$;

--> statement-breakpoint
create or replace function metersync.read_connection(
  record jsonb,
  out company_id uuid,
  out external_id text,
  out datasource text,
  out status text,
  out url text,
  out created timestamptz,
  out updated timestamptz,
  out unreadable jsonb
)
language plpgsql stable parallel safe
as $$
declare
  company_sent text := metersync.company_sent(record);
  status_sent text := record ->> 'status';
  created_sent text := record ->> 'created';
  updated_sent text := record ->> 'updated';
  parts jsonb := metersync.elements(record -> 'sitesRelations');
  part_id text;
  odd_part text;
begin
  company_id := metersync.uuid_of(company_sent);
  external_id := record ->> 'externalId';
  datasource := coalesce(record #>> '{datasource,name}', record ->> 'datasource');
  status := metersync.indexable(status_sent);
  url := record ->> 'url';
  created := metersync.read_time(created_sent);
  updated := case
    when updated_sent = created_sent then created
    else metersync.read_time(updated_sent)
  end;
  for at in 0 .. jsonb_array_length(parts) - 1 loop
    part_id := metersync.id_of(parts -> at -> 'site');
    odd_part := metersync.odd_id(part_id);
    exit when odd_part is not null;
  end loop;
  if odd_part is not null
    or num_nulls(company_sent, status_sent, created_sent, updated_sent)
      < num_nulls(company_id, status, created, updated)
  then
    unreadable := metersync.unreadable_of(jsonb_build_object(
      'company', metersync.unread_text(company_sent, company_id is not null),
      'status', metersync.unread_text(status_sent, status is not null),
      'created', metersync.unread_text(created_sent, created is not null),
      'updated', metersync.unread_text(updated_sent, updated is not null),
      'sitesRelations', metersync.unread_text(odd_part, false)
    ));
  end if;
end
$$;

--> statement-breakpoint
create or replace function metersync.read_meter(
  record jsonb,
  out company_id uuid,
  out site_id uuid,
  out account_id text,
  out datasource_type text,
  out unreadable jsonb
)
language plpgsql stable parallel safe
as $$
declare
  company_sent text := metersync.company_sent(record);
  site_sent text := coalesce(metersync.id_of(record -> 'site'), record ->> 'siteId');
begin
  company_id := metersync.uuid_of(company_sent);
  site_id := metersync.uuid_of(site_sent);
  account_id := metersync.id_of(record -> 'account');
  datasource_type := record ->> 'datasourceType';
  if num_nulls(company_sent, site_sent) < num_nulls(company_id, site_id) then
    unreadable := metersync.unreadable_of(jsonb_build_object(
      'company', metersync.unread_text(company_sent, company_id is not null),
      'site', metersync.unread_text(site_sent, site_id is not null)
    ));
  end if;
end
$$;

--> statement-breakpoint
-- A document belongs to the site that it names, or otherwise to the site that its first usage row
-- names.
create or replace function metersync.read_document(
  record jsonb,
  out company_id uuid,
  out site_id uuid,
  out created timestamptz,
  out updated timestamptz,
  out unreadable jsonb
)
language plpgsql stable parallel safe
as $$
declare
  company_sent text := metersync.company_sent(record);
  site_sent text := coalesce(
    metersync.id_of(record -> 'site'),
    metersync.id_of(record #> '{usageData,0,site}')
  );
  created_sent text := record ->> 'created';
  updated_sent text := record ->> 'updated';
  revised_sent text := record ->> 'revisedDocumentId';
  revised_id uuid := metersync.uuid_of(revised_sent);
  parts jsonb := metersync.elements(record -> 'usageData');
  part_id text;
  odd_part text;
begin
  company_id := metersync.uuid_of(company_sent);
  site_id := metersync.uuid_of(site_sent);
  created := metersync.read_time(created_sent);
  updated := case
    when updated_sent = created_sent then created
    else metersync.read_time(updated_sent)
  end;
  for at in 0 .. jsonb_array_length(parts) - 1 loop
    part_id := parts -> at ->> 'id';
    odd_part := metersync.odd_id(part_id);
    exit when odd_part is not null;
  end loop;
  if odd_part is not null
    or num_nulls(company_sent, site_sent, created_sent, updated_sent, revised_sent)
      < num_nulls(company_id, site_id, created, updated, revised_id)
  then
    unreadable := metersync.unreadable_of(jsonb_build_object(
      'company', metersync.unread_text(company_sent, company_id is not null),
      'site', metersync.unread_text(site_sent, site_id is not null),
      'created', metersync.unread_text(created_sent, created is not null),
      'updated', metersync.unread_text(updated_sent, updated is not null),
      'revisedDocumentId', metersync.unread_text(revised_sent, revised_id is not null),
      'usageData', metersync.unread_text(odd_part, false)
    ));
  end if;
end
$$;

--> statement-breakpoint
-- The document is the one that the row names; a row that names none may be listed for a document.
create or replace function metersync.read_usage(
  record jsonb,
  out company_id uuid,
  out document_id uuid,
  out meter_id text,
  out start_date date,
  out end_date date,
  out usage numeric,
  out usage_units text,
  out created timestamptz,
  out updated timestamptz,
  out unreadable jsonb
)
language plpgsql stable parallel safe
as $$
declare
  company_sent text := metersync.company_sent(record);
  document_sent text := metersync.document_sent(record);
  meter_sent text := coalesce(metersync.id_of(record -> 'meter'), record ->> 'meterId');
  start_sent text := record ->> 'startDate';
  end_sent text := record ->> 'endDate';
  usage_sent text := record ->> 'usage';
  created_sent text := record ->> 'created';
  updated_sent text := record ->> 'updated';
  estimated_sent text := record ->> 'isEstimated';
  exclusion_sent text := record ->> 'exclusion';
  demand_sent text := record ->> 'billedDemand';
  -- Generated columns hold these.
  estimated boolean := metersync.boolean_of(estimated_sent);
  exclusion boolean := metersync.boolean_of(exclusion_sent);
  demand numeric := metersync.number_of(demand_sent);
begin
  company_id := metersync.uuid_of(company_sent);
  document_id := metersync.uuid_of(document_sent);
  meter_id := metersync.indexable(meter_sent);
  meter_id := metersync.canonical_id(meter_id);
  start_date := metersync.read_date(start_sent);
  end_date := metersync.read_date(end_sent);
  usage := metersync.read_number(record -> 'usage');
  usage_units := record ->> 'usageUnits';
  created := metersync.read_time(created_sent);
  updated := case
    when updated_sent = created_sent then created
    else metersync.read_time(updated_sent)
  end;
  if num_nulls(
      company_sent, document_sent, meter_sent, start_sent, end_sent, usage_sent,
      created_sent, updated_sent, estimated_sent, exclusion_sent, demand_sent
    ) < num_nulls(
      company_id, document_id, meter_id, start_date, end_date, usage,
      created, updated, estimated, exclusion, demand
    )
  then
    unreadable := metersync.unreadable_of(jsonb_build_object(
      'company', metersync.unread_text(company_sent, company_id is not null),
      'document', metersync.unread_text(document_sent, document_id is not null),
      'meter', metersync.unread_text(meter_sent, meter_id is not null),
      'startDate', metersync.unread_text(start_sent, start_date is not null),
      'endDate', metersync.unread_text(end_sent, end_date is not null),
      'usage', metersync.unread_text(usage_sent, usage is not null),
      'created', metersync.unread_text(created_sent, created is not null),
      'updated', metersync.unread_text(updated_sent, updated is not null),
      'isEstimated', metersync.unread_text(estimated_sent, estimated is not null),
      'exclusion', metersync.unread_text(exclusion_sent, exclusion is not null),
      'billedDemand', metersync.unread_text(demand_sent, demand is not null)
    ));
  end if;
end
$$;

--> statement-breakpoint
-- How far an answer of the API may lag behind the service, together with the difference of the
-- clocks: longer than the attempts for an event. Only reads that are further apart can show that
-- the service went back to an older state.
create or replace function metersync.api_lag()
returns interval
language sql immutable parallel safe
begin atomic
  select interval '2 hours';
end;

--> statement-breakpoint
-- Since when a read certainly shows its state: since the record was updated, but not earlier than
-- the lag of the API before the read, and not later than its answer, which comes within minutes. A
-- request that was retried shows what happened after it began. Of two reads, the later of these
-- wins.
create or replace function metersync.shows_since(updated timestamptz, began timestamptz)
returns timestamptz
language sql stable parallel safe
begin atomic
  select greatest(
      began - metersync.api_lag(),
      case when updated is not null then least(updated, began + interval '5 minutes') end
    );
end;

--> statement-breakpoint
-- Whether a read ends the deletion that an event announced: it shows a newer state, or it began so
-- much later that it no longer lags behind the deletion.
create or replace function metersync.ends_deletion(
  updated timestamptz,
  began timestamptz,
  deleted_state timestamptz,
  came timestamptz
)
returns boolean
language sql stable parallel safe
begin atomic
  select coalesce(updated > deleted_state, false)
    or coalesce(began - metersync.api_lag() > came, false);
end;

--> statement-breakpoint
-- Whether the deletion that an event announced lasts. A record that was never read has no read to
-- end it.
create or replace function metersync.deletion_lasts(
  deletes boolean,
  settled_at timestamptz,
  is_read boolean,
  read_until timestamptz,
  began timestamptz,
  announced timestamptz,
  came timestamptz
)
returns boolean
language sql stable parallel safe
begin atomic
  select deletes
    and settled_at is null
    and (
      not is_read
      or not metersync.ends_deletion(read_until, began, announced, came)
    );
end;

--> statement-breakpoint
-- Whether the columns show a hint: until a read shows its state or a newer one, or its event is
-- given up.
create or replace function metersync.shows_hint(
  deletes boolean,
  lasts boolean,
  settled_at timestamptz,
  is_read boolean,
  read_until timestamptz,
  began timestamptz,
  announced timestamptz,
  came timestamptz
)
returns boolean
language sql stable parallel safe
begin atomic
  select not is_read
    or settled_at is null
    and (lasts or not deletes)
    and case
      when read_until is null then coalesce(began <= came, true)
      else announced > read_until
    end;
end;

--> statement-breakpoint
-- A row is deleted while its record is absent. Only the trigger of raw has an argument. Without it,
-- raw is as before and is not read again.
create or replace function metersync.show_company()
returns trigger
language plpgsql
as $$
declare
  said record;
begin
  new.deleted_at := new.absent_since;
  new.deleted_reason := case when new.absent_since is not null then new.absent_by end;
  if new.raw is not null and tg_nargs > 0 then
    said := metersync.read_company(new.raw);
    new.external_id := said.external_id;
    new.public_id := coalesce(said.public_id, new.public_id);
    new.name := said.name;
    new.unreadable := metersync.with_replaced(said.unreadable, new.unreadable);
  end if;
  return new;
end
$$;

--> statement-breakpoint
create or replace function metersync.show_site()
returns trigger
language plpgsql
as $$
declare
  said record;
begin
  new.deleted_at := new.absent_since;
  new.deleted_reason := case when new.absent_since is not null then new.absent_by end;
  if new.raw is not null and tg_nargs > 0 then
    said := metersync.read_site(new.raw);
    new.name := said.name;
    new.unreadable := metersync.with_replaced(said.unreadable, new.unreadable);
  end if;
  return new;
end
$$;

--> statement-breakpoint
create or replace function metersync.show_meter()
returns trigger
language plpgsql
as $$
declare
  said record;
begin
  new.deleted_at := new.absent_since;
  new.deleted_reason := case when new.absent_since is not null then new.absent_by end;
  if new.raw is not null and tg_nargs > 0 then
    said := metersync.read_meter(new.raw);
    new.company_id := coalesce(said.company_id, new.company_id);
    new.listed_by := nullif(new.listed_by, new.company_id);
    new.site_id := said.site_id;
    new.account_id := said.account_id;
    new.datasource_type := said.datasource_type;
    new.unreadable := metersync.with_replaced(said.unreadable, new.unreadable);
  end if;
  return new;
end
$$;

--> statement-breakpoint
-- What writes usage says its owner and its document. Usage is also deleted with its document,
-- unless a later read found it.
create or replace function metersync.show_usage()
returns trigger
language plpgsql
as $$
declare
  said record;
begin
  new.listed_by := nullif(new.listed_by, new.company_id);
  if new.absent_since is not null then
    new.deleted_at := new.absent_since;
    new.deleted_reason := new.absent_by;
  elsif new.document_deleted_at is not null
    and new.synced_at > new.document_deleted_at is not true
  then
    new.deleted_at := new.document_deleted_at;
    new.deleted_reason := 'document';
  else
    new.deleted_at := null;
    new.deleted_reason := null;
  end if;
  if new.raw is not null and tg_nargs > 0 then
    said := metersync.read_usage(new.raw);
    new.meter_id := said.meter_id;
    new.start_date := said.start_date;
    new.end_date := said.end_date;
    new.usage := said.usage;
    new.usage_units := said.usage_units;
    new.created := said.created;
    new.updated := said.updated;
    new.unreadable := metersync.with_replaced(said.unreadable, new.unreadable);
  end if;
  return new;
end
$$;

--> statement-breakpoint
-- Usage belongs to the company of its document, and is deleted and restored with it. Without the
-- setting, a session would keep the plan that it made while the table was empty.
create or replace function metersync.show_in_usage()
returns trigger
language plpgsql
set enable_seqscan = off
as $$
begin
  update utility.usage_data u
  set
    company_id = new.company_id,
    listed_by = nullif(u.listed_by, new.company_id),
    document_deleted_at = new.deleted_at
  where u.document_id = new.id
    and (u.company_id, u.document_deleted_at) is distinct from (new.company_id, new.deleted_at);
  return null;
end
$$;

--> statement-breakpoint
-- A hint never decides who owns a record that was read. The row of a record that was proved gone
-- shows what was announced before; the hint ends when the record is back. What writes raw or a hint
-- puts the texts that were replaced in it into unreadable. Only the trigger of raw has an argument.
-- Without it, raw is as before, and is not read again if the columns show it already or show the
-- hint: a row has it compressed.
create or replace function metersync.show_connection()
returns trigger
language plpgsql
as $$
declare
  shown record;
  is_read boolean := new.raw is not null;
  is_raw_written boolean := is_read and tg_nargs > 0;
  read_until timestamptz := new.raw_updated;
  is_gone boolean := false;
  shows_hint boolean := false;
  is_hint_new boolean := tg_op = 'INSERT' or new.hint_event_id is distinct from old.hint_event_id;
begin
  new.deleted_at := new.absent_since;
  new.deleted_reason := case when new.absent_since is not null then new.absent_by end;
  if tg_op = 'UPDATE' and old.absent_since is not null and new.absent_since is null
    and is_read and not is_hint_new and not new.hint_deletes
  then
    new.hint := null;
  end if;
  if new.hint is null and not is_read then
    return new;
  end if;
  if not is_raw_written and new.hint is null and old.hint is null
    and new.unreadable is not distinct from old.unreadable
  then
    return new;
  end if;
  if is_raw_written then
    shown := metersync.read_connection(new.raw);
    read_until := shown.updated;
    new.company_id := coalesce(shown.company_id, new.company_id);
    new.listed_by := nullif(new.listed_by, new.company_id);
  end if;
  if new.hint is not null then
    is_gone := metersync.deletion_lasts(
      new.hint_deletes, new.hint_settled_at,
      is_read, read_until, new.synced_at,
      new.hint_updated, new.hint_came
    );
    shows_hint := metersync.shows_hint(
      new.hint_deletes, is_gone, new.hint_settled_at,
      is_read, read_until, new.synced_at,
      new.hint_updated, new.hint_came
    );
  end if;
  if tg_op = 'UPDATE' and shows_hint <> is_hint_new then
    new.unreadable := old.unreadable;
  end if;
  if shows_hint then
    shown := metersync.read_connection(new.hint);
    shown.updated := new.hint_updated;
    if not is_read then
      new.company_id := coalesce(shown.company_id, new.company_id);
    end if;
  else
    if not is_raw_written then
      shown := metersync.read_connection(new.raw);
    end if;
    if not is_gone then
      new.hint := null;
    end if;
  end if;
  new.raw_updated := read_until;
  new.external_id := shown.external_id;
  new.datasource := shown.datasource;
  new.status := shown.status;
  new.url := shown.url;
  new.created := shown.created;
  new.updated := shown.updated;
  new.unreadable := metersync.with_replaced(shown.unreadable, new.unreadable);
  if is_gone then
    new.deleted_at := new.hint_came;
    new.deleted_reason := 'event';
  end if;
  return new;
end
$$;

--> statement-breakpoint
-- Not every record of a document names its site. An event may, or an earlier record.
create or replace function metersync.show_document()
returns trigger
language plpgsql
as $$
declare
  shown record;
  is_read boolean := new.raw is not null;
  is_raw_written boolean := is_read and tg_nargs > 0;
  read_until timestamptz := new.raw_updated;
  is_gone boolean := false;
  shows_hint boolean := false;
  is_hint_new boolean := tg_op = 'INSERT' or new.hint_event_id is distinct from old.hint_event_id;
  hint_site uuid;
begin
  new.deleted_at := new.absent_since;
  new.deleted_reason := case when new.absent_since is not null then new.absent_by end;
  if tg_op = 'UPDATE' and old.absent_since is not null and new.absent_since is null
    and is_read and not is_hint_new and not new.hint_deletes
  then
    new.hint := null;
  end if;
  if new.hint is null and not is_read then
    return new;
  end if;
  if not is_raw_written and new.hint is null and old.hint is null
    and new.unreadable is not distinct from old.unreadable
  then
    return new;
  end if;
  if is_raw_written then
    shown := metersync.read_document(new.raw);
    read_until := shown.updated;
    new.company_id := coalesce(shown.company_id, new.company_id);
    new.listed_by := nullif(new.listed_by, new.company_id);
  end if;
  if new.hint is not null then
    is_gone := metersync.deletion_lasts(
      new.hint_deletes, new.hint_settled_at,
      is_read, read_until, new.synced_at,
      new.hint_updated, new.hint_came
    );
    shows_hint := metersync.shows_hint(
      new.hint_deletes, is_gone, new.hint_settled_at,
      is_read, read_until, new.synced_at,
      new.hint_updated, new.hint_came
    );
    if shows_hint or new.hint_updated = read_until and not new.hint_deletes then
      hint_site := metersync.uuid_of(metersync.id_of(new.hint -> 'site'));
    end if;
  end if;
  if tg_op = 'UPDATE' and shows_hint <> is_hint_new then
    new.unreadable := old.unreadable;
  end if;
  if shows_hint then
    shown := metersync.read_document(new.hint);
    shown.updated := new.hint_updated;
    if not is_read then
      new.company_id := coalesce(shown.company_id, new.company_id);
    end if;
  else
    if not is_raw_written then
      shown := metersync.read_document(new.raw);
    end if;
    if not is_gone then
      new.hint := null;
    end if;
  end if;
  new.raw_updated := read_until;
  new.created := shown.created;
  new.updated := shown.updated;
  new.site_id := coalesce(shown.site_id, hint_site, new.site_id);
  new.unreadable := metersync.with_replaced(shown.unreadable, new.unreadable);
  if is_gone then
    new.deleted_at := new.hint_came;
    new.deleted_reason := 'event';
  end if;
  return new;
end
$$;

--> statement-breakpoint
-- Notes the companies of changed rows, for their months and checks. Each table has a function of
-- its own, because the statement names the columns that count.
create or replace function metersync.note_updates_of_documents()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set enable_mergejoin = off
as $$
begin
  if exists (select from old_rows) then
    insert into metersync.company_changes (company_id)
    select distinct c.company_id
    from old_rows o
      join new_rows n using (id)
      cross join lateral (values (o.company_id), (n.company_id)) c (company_id)
    where (
        o.company_id, o.site_id, o.created, o.raw, o.api_version, o.deleted_at
      ) is distinct from (
        n.company_id, n.site_id, n.created, n.raw, n.api_version, n.deleted_at
      )
      and c.company_id is not null;
  end if;
  return null;
end
$$;

--> statement-breakpoint
create or replace function metersync.note_updates_of_usage_data()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set enable_mergejoin = off
as $$
begin
  if exists (select from old_rows) then
    insert into metersync.company_changes (company_id)
    select distinct c.company_id
    from old_rows o
      join new_rows n using (id)
      cross join lateral (values (o.company_id), (n.company_id)) c (company_id)
    where (
        o.company_id, o.document_id, o.meter_id, o.start_date, o.end_date, o.usage, o.usage_units,
        o.created, o.raw, o.deleted_at
      ) is distinct from (
        n.company_id, n.document_id, n.meter_id, n.start_date, n.end_date, n.usage, n.usage_units,
        n.created, n.raw, n.deleted_at
      )
      and c.company_id is not null;
  end if;
  return null;
end
$$;

--> statement-breakpoint
create or replace function metersync.note_updates_of_meters()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set enable_mergejoin = off
as $$
begin
  if exists (select from old_rows) then
    insert into metersync.company_changes (company_id)
    select distinct c.company_id
    from old_rows o
      join new_rows n using (id)
      cross join lateral (values (o.company_id), (n.company_id)) c (company_id)
    where (
        o.company_id, o.site_id, o.datasource_type, o.raw, o.deleted_at
      ) is distinct from (
        n.company_id, n.site_id, n.datasource_type, n.raw, n.deleted_at
      )
      and c.company_id is not null;
  end if;
  return null;
end
$$;

--> statement-breakpoint
create table utility.companies (
  id uuid primary key,
  external_id text,
  public_id text,
  name text,
  raw jsonb,
  api_version text,
  first_synced_at timestamp(6) with time zone default now() not null,
  synced_at timestamp(6) with time zone,
  deleted_at timestamp(6) with time zone,
  deleted_reason text,
  unreadable jsonb,
  absent_since timestamp(6) with time zone,
  absent_by text
);

create index companies_unreadable on utility.companies (id)
where unreadable is not null;
create index companies_external on utility.companies (external_id);
create index companies_name on utility.companies (coalesce(name, ''), id);

--> statement-breakpoint
comment on table utility.companies is 'Companies of the organization.';
comment on column utility.companies.external_id is 'Id chosen by the customer.';
comment on column utility.companies.public_id is 'Public id of the service, from events.';
comment on column utility.companies.raw is
  'The record as the API returned it, without secrets; NULL until it is read.';
comment on column utility.companies.api_version is 'Version of the API, for example v2.2.';
comment on column utility.companies.first_synced_at is 'When metersync first wrote it.';
comment on column utility.companies.synced_at is 'When the read began that brought it.';
comment on column utility.companies.deleted_at is
  'When metersync found it gone; NULL while it exists.';
comment on column utility.companies.deleted_reason is
  'event, absent (complete listings lack it), listed (as deleted), not_found (404) or document '
  '(its document is gone).';
comment on column utility.companies.unreadable is
  'Fields that could not be read, with the beginning of their text.';
comment on column utility.companies.absent_since is
  'When a complete listing or a 404 showed that it is gone.';
comment on column utility.companies.absent_by is
  'absent, listed or not_found, as in deleted_reason.';

--> statement-breakpoint
create table utility.connection_sites (
  connection_id uuid not null,
  site_id uuid not null,
  account_ids text[] not null,
  datasource_types text[] not null,
  constraint connection_sites_connection_id_site_id_pk primary key (connection_id, site_id)
);

--> statement-breakpoint
comment on table utility.connection_sites is
  'Sites that a connection serves, and through which accounts.';
comment on column utility.connection_sites.datasource_types is 'Its commodities at the site.';

--> statement-breakpoint
create table utility.connection_status_changes (
  connection_id uuid not null,
  old_status text,
  status text not null,
  at timestamp(6) with time zone not null,
  event_id text not null,
  constraint connection_status_changes_connection_id_at_status_pk primary key (
    connection_id, at, status
  )
);

--> statement-breakpoint
comment on table utility.connection_status_changes is 'Status changes that events reported.';
comment on column utility.connection_status_changes.at is 'updated of the connection in the event.';
comment on column utility.connection_status_changes.event_id is
  'The event, or the smallest id of several.';

--> statement-breakpoint
create table utility.connections (
  id uuid primary key,
  company_id uuid,
  external_id text,
  datasource text,
  status text,
  url text,
  created timestamp(6) with time zone,
  updated timestamp(6) with time zone,
  raw_updated timestamp(6) with time zone,
  raw jsonb,
  api_version text,
  first_synced_at timestamp(6) with time zone default now() not null,
  synced_at timestamp(6) with time zone,
  deleted_at timestamp(6) with time zone,
  deleted_reason text,
  digest bytea,
  unreadable jsonb,
  absent_since timestamp(6) with time zone,
  absent_by text,
  hint_event_id text,
  hint jsonb,
  hint_updated timestamp(6) with time zone,
  hint_deletes boolean,
  hint_came timestamp(6) with time zone,
  hint_settled_at timestamp(6) with time zone,
  listed_by uuid,
  constraint connections_times_are_finite check (isfinite(created) and isfinite(updated))
);

create index connections_unreadable on utility.connections (company_id)
where unreadable is not null;
create index connections_listed_by on utility.connections (listed_by)
where listed_by is not null;
create index connections_company on utility.connections (company_id);
create index connections_status on utility.connections (status, id);

--> statement-breakpoint
comment on table utility.connections is 'Connections to utilities.';
comment on column utility.connections.external_id is 'Id chosen by the customer.';
comment on column utility.connections.datasource is 'Name of the utility.';
comment on column utility.connections.status is 'PENDING, CONNECTED, MFA_TOKEN_EXPIRED, …';
comment on column utility.connections.url is 'Address of the provider''s portal.';
comment on column utility.connections.updated is 'When the service last changed it.';
comment on column utility.connections.raw_updated is 'updated of the state in raw.';
comment on column utility.connections.raw is
  'The record as the API returned it, without secrets; NULL until it is read.';
comment on column utility.connections.api_version is 'Version of the API, for example v2.2.';
comment on column utility.connections.first_synced_at is 'When metersync first wrote it.';
comment on column utility.connections.synced_at is 'When the read began that brought it.';
comment on column utility.connections.deleted_at is
  'When metersync found it gone; NULL while it exists.';
comment on column utility.connections.deleted_reason is
  'event, absent (complete listings lack it), listed (as deleted), not_found (404) or document '
  '(its document is gone).';
comment on column utility.connections.digest is 'SHA-256 of what the row was made of.';
comment on column utility.connections.unreadable is
  'Fields that could not be read, with the beginning of their text.';
comment on column utility.connections.absent_since is
  'When a complete listing or a 404 showed that it is gone.';
comment on column utility.connections.absent_by is
  'absent, listed or not_found, as in deleted_reason.';
comment on column utility.connections.hint_event_id is
  'Newest event about it whose state no read has shown yet.';
comment on column utility.connections.hint is 'Payload of this event, while the columns show it.';
comment on column utility.connections.hint_updated is 'updated of the record in this event.';
comment on column utility.connections.hint_deletes is 'Whether this event deletes the record.';
comment on column utility.connections.hint_came is 'When this event was recorded.';
comment on column utility.connections.hint_settled_at is 'When this event was given up.';
comment on column utility.connections.listed_by is
  'Company whose listing the row shows, if not the owner.';

--> statement-breakpoint
create table utility.documents (
  id uuid primary key,
  company_id uuid,
  site_id uuid,
  created timestamp(6) with time zone,
  updated timestamp(6) with time zone,
  raw_updated timestamp(6) with time zone,
  usage_read_at timestamp(6) with time zone,
  raw jsonb,
  api_version text,
  first_synced_at timestamp(6) with time zone default now() not null,
  synced_at timestamp(6) with time zone,
  deleted_at timestamp(6) with time zone,
  deleted_reason text,
  revised_document_id uuid
    generated always as (metersync.uuid_of(raw ->> 'revisedDocumentId')) stored,
  digest bytea,
  unreadable jsonb,
  absent_since timestamp(6) with time zone,
  absent_by text,
  hint_event_id text,
  hint jsonb,
  hint_updated timestamp(6) with time zone,
  hint_deletes boolean,
  hint_came timestamp(6) with time zone,
  hint_settled_at timestamp(6) with time zone,
  listed_by uuid,
  constraint documents_times_are_finite check (isfinite(created) and isfinite(updated))
);

create index documents_unreadable on utility.documents (company_id)
where unreadable is not null;
create index documents_listed_by on utility.documents (listed_by)
where listed_by is not null;
create index documents_company on utility.documents (company_id);
create index documents_successor on utility.documents (revised_document_id)
where revised_document_id is not null;
create index documents_numbers on utility.documents using gin (
  (array[raw ->> 'invoiceId', raw ->> 'accountNumber'])
)
with (fastupdate = off);

--> statement-breakpoint
comment on table utility.documents is 'Utility bills.';
comment on column utility.documents.site_id is 'Site that the record or an event names.';
comment on column utility.documents.updated is 'When the service last changed it.';
comment on column utility.documents.raw_updated is 'updated of the state in raw.';
comment on column utility.documents.usage_read_at is 'When the last read of all its usage began.';
comment on column utility.documents.raw is
  'The record as the API returned it, without secrets; NULL until it is read.';
comment on column utility.documents.api_version is 'Version of the API, for example v2.2.';
comment on column utility.documents.first_synced_at is 'When metersync first wrote it.';
comment on column utility.documents.synced_at is 'When the read began that brought it.';
comment on column utility.documents.deleted_at is
  'When metersync found it gone; NULL while it exists.';
comment on column utility.documents.deleted_reason is
  'event, absent (complete listings lack it), listed (as deleted), not_found (404) or document '
  '(its document is gone).';
comment on column utility.documents.revised_document_id is
  'Document that superseded it, by the service.';
comment on column utility.documents.digest is 'SHA-256 of what the row was made of.';
comment on column utility.documents.unreadable is
  'Fields that could not be read, with the beginning of their text.';
comment on column utility.documents.absent_since is
  'When a complete listing or a 404 showed that it is gone.';
comment on column utility.documents.absent_by is
  'absent, listed or not_found, as in deleted_reason.';
comment on column utility.documents.hint_event_id is
  'Newest event about it whose state no read has shown yet.';
comment on column utility.documents.hint is 'Payload of this event, while the columns show it.';
comment on column utility.documents.hint_updated is 'updated of the record in this event.';
comment on column utility.documents.hint_deletes is 'Whether this event deletes the record.';
comment on column utility.documents.hint_came is 'When this event was recorded.';
comment on column utility.documents.hint_settled_at is 'When this event was given up.';
comment on column utility.documents.listed_by is
  'Company whose listing the row shows, if not the owner.';

--> statement-breakpoint
create table utility.intervals (
  meter_id text not null,
  start_at timestamp(6) with time zone not null,
  granularity_seconds integer not null,
  usage_units text not null,
  usage numeric,
  quality text,
  updated timestamp(6) with time zone,
  synced_at timestamp(6) with time zone not null,
  ordinal integer default 0 not null,
  unreadable jsonb,
  constraint intervals_pk primary key (
    meter_id, start_at, granularity_seconds, usage_units, ordinal
  ),
  constraint intervals_usage_is_finite check (usage > '-Infinity' and usage < 'Infinity'),
  constraint intervals_granularity_is_positive check (granularity_seconds > 0)
)
partition by range (start_at);

create index intervals_start on utility.intervals using brin (start_at);

-- Readings of any year may come, and a partition of each of their months would take more locks than
-- a server has. Months within metersync.interval_months() have one each, made when the first
-- reading comes; what lies before and after stands in these two. No default partition: making a
-- month would have to wait for everybody who reads it.
create table utility.intervals_before_2000 partition of utility.intervals
for values from (minvalue) to ('2000-01-01 00:00:00+00');
create table utility.intervals_from_2050 partition of utility.intervals
for values from ('2050-01-01 00:00:00+00') to (maxvalue);

-- How many rows a look for one meter finds in a month. Counting what is there would say as many as
-- a meter with readings has, for each meter, and most have none: reading whole months would look
-- cheaper than asking for the meters of a company. The fraction stands for some 500, between the
-- 744 hours and the 30 days that a month has, and grows with the table.
alter table utility.intervals alter column meter_id set (n_distinct_inherited = -0.002);
alter table utility.intervals_before_2000 alter column meter_id set (n_distinct = -0.002);
alter table utility.intervals_from_2050 alter column meter_id set (n_distinct = -0.002);

--> statement-breakpoint
comment on table utility.intervals is 'Interval readings, partitioned by month of start_at (UTC).';
comment on column utility.intervals.granularity_seconds is 'Length.';
comment on column utility.intervals.usage_units is 'Unit, as the service names it.';
comment on column utility.intervals.usage is 'Amount in usage_units.';
comment on column utility.intervals.quality is 'ACTUAL, ESTIMATED, …, as the service sent it.';
comment on column utility.intervals.updated is 'When the service last changed it.';
comment on column utility.intervals.synced_at is 'When the read began that brought it.';
comment on column utility.intervals.ordinal is
  'Distinguishes readings with the same start, length and unit.';
comment on column utility.intervals.unreadable is
  'Fields that could not be read, with the beginning of their text.';

--> statement-breakpoint
create table utility.meters (
  id text primary key,
  company_id uuid,
  site_id uuid,
  account_id text,
  datasource_type text,
  raw jsonb,
  api_version text,
  first_synced_at timestamp(6) with time zone default now() not null,
  synced_at timestamp(6) with time zone,
  deleted_at timestamp(6) with time zone,
  deleted_reason text,
  digest bytea,
  unreadable jsonb,
  absent_since timestamp(6) with time zone,
  absent_by text,
  listed_by uuid
);

create index meters_company on utility.meters (company_id);
create index meters_unreadable on utility.meters (company_id)
where unreadable is not null;
create index meters_listed_by on utility.meters (listed_by)
where listed_by is not null;

--> statement-breakpoint
comment on table utility.meters is 'Meters.';
comment on column utility.meters.datasource_type is 'Commodity, for example ELECTRICITY.';
comment on column utility.meters.raw is
  'The record as the API returned it, without secrets; NULL until it is read.';
comment on column utility.meters.api_version is 'Version of the API, for example v2.2.';
comment on column utility.meters.first_synced_at is 'When metersync first wrote it.';
comment on column utility.meters.synced_at is 'When the read began that brought it.';
comment on column utility.meters.deleted_at is
  'When metersync found it gone; NULL while it exists.';
comment on column utility.meters.deleted_reason is
  'event, absent (complete listings lack it), listed (as deleted), not_found (404) or document '
  '(its document is gone).';
comment on column utility.meters.digest is 'SHA-256 of what the row was made of.';
comment on column utility.meters.unreadable is
  'Fields that could not be read, with the beginning of their text.';
comment on column utility.meters.absent_since is
  'When a complete listing or a 404 showed that it is gone.';
comment on column utility.meters.absent_by is 'absent, listed or not_found, as in deleted_reason.';
comment on column utility.meters.listed_by is
  'Company whose listing the row shows, if not the owner.';

--> statement-breakpoint
create table utility.sites (
  id uuid primary key,
  company_id uuid,
  name text,
  raw jsonb,
  api_version text,
  first_synced_at timestamp(6) with time zone default now() not null,
  synced_at timestamp(6) with time zone,
  deleted_at timestamp(6) with time zone,
  deleted_reason text,
  unreadable jsonb,
  absent_since timestamp(6) with time zone,
  absent_by text
);

create index sites_company on utility.sites (company_id);
create index sites_unreadable on utility.sites (company_id)
where unreadable is not null;

--> statement-breakpoint
comment on table utility.sites is 'Sites of companies.';
comment on column utility.sites.raw is
  'The record as the API returned it, without secrets; NULL until it is read.';
comment on column utility.sites.api_version is 'Version of the API, for example v2.2.';
comment on column utility.sites.first_synced_at is 'When metersync first wrote it.';
comment on column utility.sites.synced_at is 'When the read began that brought it.';
comment on column utility.sites.deleted_at is 'When metersync found it gone; NULL while it exists.';
comment on column utility.sites.deleted_reason is
  'event, absent (complete listings lack it), listed (as deleted), not_found (404) or document '
  '(its document is gone).';
comment on column utility.sites.unreadable is
  'Fields that could not be read, with the beginning of their text.';
comment on column utility.sites.absent_since is
  'When a complete listing or a 404 showed that it is gone.';
comment on column utility.sites.absent_by is 'absent, listed or not_found, as in deleted_reason.';

--> statement-breakpoint
create table utility.usage_data (
  id uuid primary key,
  company_id uuid,
  document_id uuid,
  meter_id text,
  start_date date,
  end_date date,
  usage numeric,
  usage_units text,
  created timestamp(6) with time zone,
  updated timestamp(6) with time zone,
  raw jsonb,
  api_version text,
  first_synced_at timestamp(6) with time zone default now() not null,
  synced_at timestamp(6) with time zone,
  deleted_at timestamp(6) with time zone,
  deleted_reason text,
  is_estimated boolean generated always as (metersync.boolean_of(raw ->> 'isEstimated')) stored,
  exclusion boolean generated always as (metersync.boolean_of(raw ->> 'exclusion')) stored,
  net_metering_type text generated always as (raw ->> 'netMeteringType') stored,
  billed_demand numeric generated always as (metersync.number_of(raw ->> 'billedDemand')) stored,
  digest bytea,
  unreadable jsonb,
  absent_since timestamp(6) with time zone,
  absent_by text,
  document_deleted_at timestamp(6) with time zone,
  listed_by uuid,
  constraint usage_data_usage_is_finite check (usage > '-Infinity' and usage < 'Infinity')
);

create index usage_data_unreadable on utility.usage_data (company_id)
where unreadable is not null;
create index usage_data_listed_by on utility.usage_data (listed_by)
where listed_by is not null;
create index usage_data_company on utility.usage_data (company_id, meter_id);
create index usage_data_document on utility.usage_data (document_id);
create index usage_data_meter on utility.usage_data (meter_id);

--> statement-breakpoint
comment on table utility.usage_data is 'Usage of one meter over one period, from one bill.';
comment on column utility.usage_data.start_date is 'First day, as the service sent it.';
comment on column utility.usage_data.end_date is 'Last day, as the service sent it.';
comment on column utility.usage_data.usage is 'Amount in usage_units.';
comment on column utility.usage_data.usage_units is 'Unit, as the service names it.';
comment on column utility.usage_data.updated is 'When the service last changed it.';
comment on column utility.usage_data.raw is
  'The record as the API returned it, without secrets; NULL until it is read.';
comment on column utility.usage_data.api_version is 'Version of the API, for example v2.2.';
comment on column utility.usage_data.first_synced_at is 'When metersync first wrote it.';
comment on column utility.usage_data.synced_at is 'When the read began that brought it.';
comment on column utility.usage_data.deleted_at is
  'When metersync found it gone; NULL while it exists.';
comment on column utility.usage_data.deleted_reason is
  'event, absent (complete listings lack it), listed (as deleted), not_found (404) or document '
  '(its document is gone).';
comment on column utility.usage_data.is_estimated is 'Whether the utility estimated it.';
comment on column utility.usage_data.exclusion is 'Whether sums subtract it.';
comment on column utility.usage_data.net_metering_type is 'IMPORT, EXPORT or GENERATION.';
comment on column utility.usage_data.billed_demand is 'Demand that the bill charges.';
comment on column utility.usage_data.digest is 'SHA-256 of what the row was made of.';
comment on column utility.usage_data.unreadable is
  'Fields that could not be read, with the beginning of their text.';
comment on column utility.usage_data.absent_since is
  'When a complete listing or a 404 showed that it is gone.';
comment on column utility.usage_data.absent_by is
  'absent, listed or not_found, as in deleted_reason.';
comment on column utility.usage_data.document_deleted_at is 'deleted_at of its document.';
comment on column utility.usage_data.listed_by is
  'Company whose listing the row shows, if not the owner.';

--> statement-breakpoint
create table ops.company_overrides (
  company_id uuid primary key,
  time_zone text,
  emission_region text,
  constraint company_overrides_time_zone check (metersync.is_time_zone(time_zone))
);

--> statement-breakpoint
comment on table ops.company_overrides is 'The same for all sites of a company; yours to fill.';
comment on column ops.company_overrides.time_zone is 'IANA name; NULL means UTC.';
comment on column ops.company_overrides.emission_region is 'Region that selects emission factors.';

--> statement-breakpoint
create table ops.data_issues (
  id bigint primary key generated always as identity,
  check_name text not null,
  severity text not null,
  company_id uuid,
  entity_type text not null,
  entity_id text not null,
  subject text default '' not null,
  evidence jsonb not null,
  opened_at timestamp(6) with time zone default now() not null,
  last_seen_at timestamp(6) with time zone default now() not null,
  closed_at timestamp(6) with time zone,
  closed_reason text,
  acknowledged_at timestamp(6) with time zone,
  acknowledged_note text,
  may_cost numeric
    generated always as (coalesce((evidence ->> 'may_cost')::numeric, 0)) stored not null,
  constraint data_issues_severity check (severity in ('error', 'warning', 'info')),
  constraint data_issues_closed_reason check (
    (closed_reason is null) = (closed_at is null) and closed_reason in ('evidence_gone',
      'check_off', 'check_removed')
  ),
  constraint data_issues_acknowledged_note check (
    acknowledged_note is null or acknowledged_at is not null
  )
);

create unique index data_issues_open
on ops.data_issues (check_name, entity_type, entity_id, subject)
where closed_at is null;
create index data_issues_company on ops.data_issues (company_id, check_name);
create index data_issues_new on ops.data_issues (check_name, severity, may_cost, opened_at, id)
where closed_at is null and acknowledged_at is null;
create index data_issues_listed on ops.data_issues (
  (
    case severity when 'error' then 3 when 'warning' then 2 else 1 end
    + case when acknowledged_at is null then 3 else 0 end
  ),
  may_cost,
  opened_at,
  id
)
where closed_at is null and id > 0;
create index data_issues_of_check on ops.data_issues (
  check_name,
  (
    case severity when 'error' then 3 when 'warning' then 2 else 1 end
    + case when acknowledged_at is null then 3 else 0 end
  ),
  may_cost,
  opened_at,
  id
)
where closed_at is null and id > 0;

--> statement-breakpoint
comment on table ops.data_issues is 'Findings of the checks, open while closed_at is NULL.';
comment on column ops.data_issues.severity is
  'error (numbers are wrong), warning (look at it) or info.';
comment on column ops.data_issues.entity_type is
  'document, usage, meter, connection, company or site.';
comment on column ops.data_issues.subject is
  'What distinguishes issues of one entity: a period or another id.';
comment on column ops.data_issues.evidence is 'Figures that show the issue.';
comment on column ops.data_issues.opened_at is 'When a check first found it.';
comment on column ops.data_issues.last_seen_at is
  'When a check last found it, to the day, or found other evidence.';
comment on column ops.data_issues.closed_at is 'When no check found it any more.';
comment on column ops.data_issues.closed_reason is
  'evidence_gone, check_off (CHECKS_OFF) or check_removed.';
comment on column ops.data_issues.may_cost is
  'What the missing bills of a gap may cost, in the currency of its evidence.';

--> statement-breakpoint
create table ops.emission_factors (
  id bigint primary key generated always as identity,
  region text default '' not null,
  datasource_type text not null,
  scope smallint not null,
  method text default '' not null,
  valid_from date default '-infinity' not null,
  valid_to date default 'infinity' not null,
  units text not null,
  kg_co2e_per_unit numeric not null,
  source text not null,
  version text default '' not null,
  created_at timestamp(6) with time zone default now() not null,
  constraint emission_factors_scope check (scope between 1 and 3),
  constraint emission_factors_method check (method in ('', 'location', 'market')),
  constraint emission_factors_valid check (valid_to > valid_from)
);

--> statement-breakpoint
comment on table ops.emission_factors is 'Emission factors that you supply; empty at first.';
comment on column ops.emission_factors.region is
  'Emission region (see site_overrides); empty for every site.';
comment on column ops.emission_factors.datasource_type is 'Commodity, for example ELECTRICITY.';
comment on column ops.emission_factors.scope is 'Scope of the greenhouse gas protocol, 1 to 3.';
comment on column ops.emission_factors.method is 'location or market for scope 2, otherwise empty.';
comment on column ops.emission_factors.valid_to is 'Day after the last.';
comment on column ops.emission_factors.units is 'Standard unit of usage.';
comment on column ops.emission_factors.source is 'Where the factor is from.';
comment on column ops.emission_factors.version is 'Set of factors. Never add emissions of several.';

--> statement-breakpoint
create table ops.site_overrides (
  site_id uuid primary key,
  time_zone text,
  emission_region text,
  floor_area numeric,
  floor_area_units text,
  constraint site_overrides_time_zone check (metersync.is_time_zone(time_zone))
);

--> statement-breakpoint
comment on table ops.site_overrides is
  'Facts of a site that the service does not send; yours to fill.';
comment on column ops.site_overrides.time_zone is 'IANA name; NULL means that of the company.';
comment on column ops.site_overrides.emission_region is 'Region that selects emission factors.';
comment on column ops.site_overrides.floor_area_units is 'For example sq ft.';

--> statement-breakpoint
create table ops.unit_factors (
  units text not null,
  datasource_type text default '' not null,
  dimension text not null,
  standard_units text not null,
  factor numeric not null,
  source text not null,
  constraint unit_factors_units_datasource_type_pk primary key (units, datasource_type)
);

--> statement-breakpoint
comment on table ops.unit_factors is
  'How units become a standard unit. Add those that depend on the commodity, such as the heat '
  'content of gas.';
comment on column ops.unit_factors.units is 'Unit, as the service names it.';
comment on column ops.unit_factors.datasource_type is
  'Commodity; empty for all without a row of their own.';
comment on column ops.unit_factors.dimension is
  'energy, power, apparent power, reactive power, volume, mass or length.';
comment on column ops.unit_factors.standard_units is 'Unit that views convert it to.';
comment on column ops.unit_factors.factor is 'Standard units in one unit.';
comment on column ops.unit_factors.source is 'Where the factor is from.';

--> statement-breakpoint
create table metersync.alerts (
  id uuid primary key default gen_random_uuid() not null,
  name text not null,
  key text not null,
  detail text not null,
  pending_since timestamp(6) with time zone not null,
  opened_at timestamp(6) with time zone,
  notified_at timestamp(6) with time zone,
  error text,
  closed_at timestamp(6) with time zone,
  acknowledged_at timestamp(6) with time zone,
  acknowledged_by text,
  acknowledged_note text,
  acknowledged_counts jsonb,
  constraint alerts_open_before_they_close check (closed_at is null or opened_at is not null)
);

create unique index alerts_live on metersync.alerts (name, key)
where closed_at is null;
create index alerts_closed on metersync.alerts (closed_at)
where closed_at is not null;

--> statement-breakpoint
comment on table metersync.alerts is 'Alarms that workers raised: pending, open and closed.';
comment on column metersync.alerts.id is 'The alarm, the same from its beginning to its end.';
comment on column metersync.alerts.name is 'Its name in docs/runbooks.md.';
comment on column metersync.alerts.key is
  'What tells it apart from others of its name, for example a failure code.';
comment on column metersync.alerts.detail is 'What was seen last.';
comment on column metersync.alerts.pending_since is 'When its condition began.';
comment on column metersync.alerts.opened_at is 'When it had lasted long enough; null until then.';
comment on column metersync.alerts.notified_at is
  'When NOTIFY_URL last took a change of it: that it opened, or is over.';
comment on column metersync.alerts.error is
  'Why NOTIFY_URL has not taken its last change; null if it has, or was not asked.';
comment on column metersync.alerts.closed_at is 'When its condition was over.';
comment on column metersync.alerts.acknowledged_at is
  'When somebody acknowledged it; NULL if nobody did.';
comment on column metersync.alerts.acknowledged_by is 'Who acknowledged it.';
comment on column metersync.alerts.acknowledged_note is 'Why.';
comment on column metersync.alerts.acknowledged_counts is 'What it counted then: more is news.';

--> statement-breakpoint
create table metersync.also_listed (
  resource text not null,
  record_id text not null,
  company_id uuid not null,
  raw jsonb,
  digest bytea,
  api_version text,
  read_at timestamp(6) with time zone,
  constraint also_listed_resource_record_id_company_id_pk primary key (
    resource, record_id, company_id
  )
);

create index also_listed_company on metersync.also_listed (company_id, resource);

--> statement-breakpoint
comment on table metersync.also_listed is
  'Records that a company lists although their rows show what another company lists.';
comment on column metersync.also_listed.resource is 'Kind of the record.';
comment on column metersync.also_listed.record_id is 'Id of the record.';
comment on column metersync.also_listed.company_id is 'The company that lists it.';
comment on column metersync.also_listed.raw is
  'The record as this company lists it. NULL if metersync 0.2 noted that it does.';
comment on column metersync.also_listed.digest is 'Digest of the record as it was sent.';
comment on column metersync.also_listed.api_version is 'Version of the API that sent it.';
comment on column metersync.also_listed.read_at is 'When it was read.';

--> statement-breakpoint
create table metersync.company_changes (
  company_id uuid,
  changed_at timestamp(6) with time zone default clock_timestamp() not null,
  is_kept boolean default false not null
);

create index company_changes_company on metersync.company_changes (company_id);
create index company_changes_waiting on metersync.company_changes (changed_at)
where not is_kept;

--> statement-breakpoint
comment on table metersync.company_changes is
  'Companies whose records changed since their months were worked out, and when the months of '
  'each company were.';
comment on column metersync.company_changes.company_id is 'The company; NULL for all.';
comment on column metersync.company_changes.changed_at is
  'When it was written, or the months were worked out.';
comment on column metersync.company_changes.is_kept is 'Whether the months were worked out then.';

--> statement-breakpoint
create table metersync.data_checks (
  company_id uuid not null,
  run_with text not null,
  seen_until timestamp(6) with time zone not null,
  today date not null,
  checks_off text[] not null,
  constraint data_checks_company_id_run_with_pk primary key (company_id, run_with)
);

--> statement-breakpoint
comment on table metersync.data_checks is
  'Companies that no change touched since their checks, by kind of checks.';
comment on column metersync.data_checks.company_id is 'The company.';
comment on column metersync.data_checks.run_with is
  'Which of ops.data_issue_checks were made: those that run with bills, connections or intervals.';
comment on column metersync.data_checks.seen_until is
  'Nothing that changed before was left out: the check began then, or it was found later that '
  'nothing had changed.';
comment on column metersync.data_checks.today is 'The date that the check took for today.';
comment on column metersync.data_checks.checks_off is 'Checks that were left out.';

--> statement-breakpoint
create table metersync.deletes (
  run_id uuid not null,
  company_id uuid,
  resource text not null,
  record_id text not null,
  state text not null,
  reason text default 'absent' not null,
  updated timestamp(6) with time zone,
  absent_since timestamp(6) with time zone not null,
  noted_at timestamp(6) with time zone default now() not null,
  decided_at timestamp(6) with time zone,
  meter_id text,
  usage_units text,
  starts_from timestamp(6) with time zone,
  starts_before timestamp(6) with time zone,
  readings bigint,
  constraint deletes_run_id_resource_record_id_pk primary key (run_id, resource, record_id),
  constraint deletes_state check (state in ('quarantined', 'applied', 'rejected', 'undone')),
  constraint deletes_reason check (reason in ('absent', 'listed'))
);

create index deletes_undecided on metersync.deletes (company_id, resource)
where state = 'quarantined';
create index deletes_kept on metersync.deletes (company_id, resource)
where state not in ('quarantined', 'applied');
create index deletes_record on metersync.deletes (resource, record_id);
create index deletes_meter on metersync.deletes (meter_id)
where meter_id is not null;

--> statement-breakpoint
comment on table metersync.deletes is
  'Rows that a run found gone: tombstoned, or kept until somebody decides.';
comment on column metersync.deletes.company_id is 'Company of the row.';
comment on column metersync.deletes.resource is 'Resource of the row.';
comment on column metersync.deletes.record_id is 'Id of the row.';
comment on column metersync.deletes.state is
  'quarantined: more rows than the cap, kept until somebody decides; applied: tombstoned; '
  'rejected: kept; undone: revived.';
comment on column metersync.deletes.reason is
  'absent: no pass of a backfill, or look of an audit, showed it; listed: a reconcile saw it '
  'among deleted documents.';
comment on column metersync.deletes.updated is
  'The updated of the record where the service lists it as deleted.';
comment on column metersync.deletes.absent_since is
  'When the first of the reads began that did not see it, or saw it among deleted ones.';
comment on column metersync.deletes.noted_at is 'When the run noted it.';
comment on column metersync.deletes.decided_at is 'When somebody decided.';
comment on column metersync.deletes.meter_id is 'Meter of a range of readings; otherwise NULL.';
comment on column metersync.deletes.usage_units is 'Unit of a range of readings.';
comment on column metersync.deletes.starts_from is 'When the first reading of the range starts.';
comment on column metersync.deletes.starts_before is 'When the last reading of the range ends.';
comment on column metersync.deletes.readings is 'How many readings of the range are absent.';

--> statement-breakpoint
create table metersync.earlier_states (
  resource text not null,
  id uuid,
  company_id uuid,
  site_id uuid,
  document_id uuid,
  revised_document_id uuid,
  meter_id text,
  external_id text,
  public_id text,
  name text,
  datasource text,
  status text,
  url text,
  account_id text,
  datasource_type text,
  start_date date,
  end_date date,
  usage numeric,
  usage_units text,
  is_estimated boolean,
  exclusion boolean,
  net_metering_type text,
  billed_demand numeric,
  created timestamp(6) with time zone,
  updated timestamp(6) with time zone,
  raw_updated timestamp(6) with time zone,
  usage_read_at timestamp(6) with time zone,
  raw jsonb,
  api_version text,
  first_synced_at timestamp(6) with time zone default now() not null,
  synced_at timestamp(6) with time zone,
  deleted_at timestamp(6) with time zone,
  deleted_reason text,
  valid_from timestamp(6) with time zone not null,
  valid_to timestamp(6) with time zone not null,
  ended_by_kind text,
  ended_by text,
  constraint earlier_states_have_an_id check ((id is null) = (resource = 'meters'))
);

create index earlier_states_record on metersync.earlier_states (resource, id, valid_to);
create index earlier_states_meter on metersync.earlier_states (meter_id, valid_to)
where resource = 'meters';
create index earlier_states_company on metersync.earlier_states (company_id)
where resource = 'documents';

--> statement-breakpoint
comment on table metersync.earlier_states is
  'Earlier states of all records. The views of schema history have those of one resource each.';
comment on column metersync.earlier_states.resource is
  'companies, sites, connections, documents, usageData or meters. Columns that its table in '
  'utility lacks are NULL.';
comment on column metersync.earlier_states.valid_from is 'When the warehouse began to say this.';
comment on column metersync.earlier_states.valid_to is 'When it stopped to, not included.';
comment on column metersync.earlier_states.ended_by_kind is
  'event or run; NULL where neither is known.';
comment on column metersync.earlier_states.ended_by is 'Id of the event or run.';

--> statement-breakpoint
create table metersync.event_payloads (
  id text primary key,
  payload jsonb,
  body bytea,
  constraint event_payloads_keep_bytes check (payload is not null or body is not null)
);

--> statement-breakpoint
comment on table metersync.event_payloads is
  'What each event of the journal said, until it is dropped for its age.';
comment on column metersync.event_payloads.id is 'The event.';
comment on column metersync.event_payloads.payload is
  'Its payload; NULL where Postgres cannot hold it: then body has its bytes.';
comment on column metersync.event_payloads.body is
  'The exact bytes of a payload that jsonb cannot hold.';

--> statement-breakpoint
create table metersync.field_catalogue (
  resource text not null,
  api_version text not null,
  path text not null,
  types text[] not null,
  first_seen_at timestamp(6) with time zone default clock_timestamp() not null,
  constraint field_catalogue_resource_api_version_path_pk primary key (resource, api_version, path)
);

--> statement-breakpoint
comment on table metersync.field_catalogue is 'What ops.field_catalogue shows.';
comment on column metersync.field_catalogue.resource is
  'documents, usageData, …; events/TYPE for payloads of events.';
comment on column metersync.field_catalogue.api_version is
  'Version of the API; webhooks for events.';
comment on column metersync.field_catalogue.path is
  'A JSON Pointer, in which * is any element of an array, and ~2 an asterisk.';
comment on column metersync.field_catalogue.types is
  'boolean, number, decimal (a number as text), timestamp, date, uuid, text, object, array, or map '
  '(an object with many fields, or named by data).';
comment on column metersync.field_catalogue.first_seen_at is 'When a record first had it.';

--> statement-breakpoint
create table metersync.gates (
  scope text primary key,
  code text not null,
  message text not null,
  since timestamp(6) with time zone default clock_timestamp() not null,
  attempts integer not null,
  next_probe_at timestamp(6) with time zone not null
);

--> statement-breakpoint
comment on table metersync.gates is
  'Which requests fail for now: no other is sent until one that is sent as a probe succeeds.';
comment on column metersync.gates.scope is
  'What fails: service, or the queue of an owner as in metersync.journal.';
comment on column metersync.gates.code is 'The failure, as docs/reference/failures.md lists it.';
comment on column metersync.gates.message is 'The failure in words.';
comment on column metersync.gates.since is 'When this failure was first met.';
comment on column metersync.gates.attempts is
  'Unsuccessful attempts. The wait after each is longer.';
comment on column metersync.gates.next_probe_at is
  'When the sweep sends the next request as a probe.';

--> statement-breakpoint
create table metersync.heartbeat (
  one boolean primary key default true not null,
  at timestamp(6) with time zone,
  refused jsonb,
  refused_since timestamp(6) with time zone,
  refused_until timestamp(6) with time zone,
  constraint heartbeat_has_one_row check (one)
);

--> statement-breakpoint
comment on table metersync.heartbeat is 'When the look of each minute last ran.';
comment on column metersync.heartbeat.one is 'Always true: there is one row.';
comment on column metersync.heartbeat.at is 'When it last ran.';
comment on column metersync.heartbeat.refused is
  'Signed deliveries that receivers refused, by reason.';
comment on column metersync.heartbeat.refused_since is 'When the first of them was reported.';
comment on column metersync.heartbeat.refused_until is 'When the last of them was reported.';

--> statement-breakpoint
create table metersync.interval_fetches (
  meter_id text primary key,
  fetched tstzmultirange not null,
  updated_at timestamp(6) with time zone default now() not null
);

--> statement-breakpoint
comment on table metersync.interval_fetches is 'Ranges of readings that were fetched, by meter.';
comment on column metersync.interval_fetches.meter_id is 'The meter.';
comment on column metersync.interval_fetches.fetched is 'All ranges that were fetched, merged.';
comment on column metersync.interval_fetches.updated_at is 'When the last one was added.';

--> statement-breakpoint
create table metersync.interval_reads (
  meter_id text not null,
  span tstzrange not null,
  began timestamp(6) with time zone not null,
  constraint interval_reads_meter_id_span_pk primary key (meter_id, span)
);

--> statement-breakpoint
comment on table metersync.interval_reads is
  'Ranges of readings that were read within a day: an earlier read that is written later does not '
  'bring back what a later one did not show.';
comment on column metersync.interval_reads.meter_id is 'The meter.';
comment on column metersync.interval_reads.span is 'The range, without its end.';
comment on column metersync.interval_reads.began is 'When the last read of this range began.';

--> statement-breakpoint
create table metersync.journal (
  id text primary key,
  type text not null,
  kind text not null,
  record_id text,
  company_id uuid,
  occurred_at timestamp(6) with time zone,
  range_start timestamp(6) with time zone,
  range_end timestamp(6) with time zone,
  received_at timestamp(6) with time zone not null,
  recorded_at timestamp(6) with time zone default clock_timestamp() not null,
  settled_at timestamp(6) with time zone,
  outcome text not null,
  error text,
  error_code text,
  attempts integer default 0 not null,
  interval_count bigint,
  intervals_found bigint,
  workflow_id text,
  workflow_run_id text,
  payload_dropped_at timestamp(6) with time zone,
  aside text
    generated always as (
      case
        when outcome in ('superseded', 'ignored', 'dead', 'missing') then outcome
        when settled_at - received_at > interval '1 day' then 'late'
      end
    ) stored,
  aside_at timestamp(6) with time zone
    generated always as (
      case
        when outcome in ('superseded', 'ignored', 'dead', 'missing')
          or settled_at - received_at > interval '1 day' then coalesce(settled_at, recorded_at)
      end
    ) stored,
  lacking bigint
    generated always as (
      case when intervals_found < interval_count then interval_count - intervals_found end
    ) stored,
  queue text,
  due_at timestamp(6) with time zone,
  constraint journal_outcome check (
    outcome in ('pending', 'applied', 'superseded', 'ignored', 'dead', 'missing')
  ),
  constraint journal_ranges_have_a_length check (range_end >= range_start),
  constraint journal_dead_say_why check (outcome <> 'dead' or error is not null),
  constraint journal_pending_are_queued check (
    (outcome = 'pending') = (queue is not null) and (queue is null) = (due_at is null)
  )
)
with (autovacuum_vacuum_scale_factor = 0.01);

create index journal_record on metersync.journal (record_id, recorded_at);
create index journal_received on metersync.journal (received_at, id);
create index journal_company on metersync.journal (company_id, received_at, id)
where company_id is not null;
create index journal_aside on metersync.journal (aside, aside_at, id)
where aside is not null;
create index journal_missing on metersync.journal (record_id)
where aside = 'missing';
create index journal_lacking on metersync.journal (record_id)
where lacking is not null;
create index journal_with_payload on metersync.journal (received_at)
where payload_dropped_at is null;
create index journal_pending_record on metersync.journal (record_id, kind)
where outcome = 'pending';
create index journal_pending_queue on metersync.journal (queue, due_at, id)
where queue is not null;
create index journal_pending_due on metersync.journal (kind, due_at, id)
where due_at is not null;
create index journal_pending_failed on metersync.journal (error_code, due_at, id)
where outcome = 'pending' and error_code is not null;

--> statement-breakpoint
comment on table metersync.journal is
  'The journal: each verified event once, with what became of it.';
comment on column metersync.journal.id is 'Message id of the delivery: the same on every attempt.';
comment on column metersync.journal.type is
  'Type of the event; derived from its shape where the payload names none; else unknown.';
comment on column metersync.journal.kind is 'connection, document, interval or ignored.';
comment on column metersync.journal.record_id is
  'Connection, document or meter that the event is about.';
comment on column metersync.journal.company_id is 'Company that the payload names.';
comment on column metersync.journal.occurred_at is 'updated of the record in the payload.';
comment on column metersync.journal.range_start is 'Start of a synced interval range.';
comment on column metersync.journal.range_end is 'End of a synced interval range.';
comment on column metersync.journal.received_at is 'When the receiver had the request (its clock).';
comment on column metersync.journal.recorded_at is
  'When the event entered the journal (the warehouse''s clock).';
comment on column metersync.journal.settled_at is
  'When a read of its record settled it, or it was given up; NULL while it waits, and where it '
  'never had to.';
comment on column metersync.journal.outcome is
  'pending, applied, superseded, ignored, dead or missing, as metersync.events explains.';
comment on column metersync.journal.error is 'Why it is dead or missing.';
comment on column metersync.journal.error_code is
  'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on column metersync.journal.attempts is
  'Unsuccessful attempts to read its record, for the reason in error_code.';
comment on column metersync.journal.interval_count is 'Readings that the event said its range has.';
comment on column metersync.journal.intervals_found is
  'Readings that the warehouse had in the range when it was fetched.';
comment on column metersync.journal.workflow_id is 'Temporal workflow that recorded the event.';
comment on column metersync.journal.workflow_run_id is 'Its run.';
comment on column metersync.journal.payload_dropped_at is
  'When its payload was dropped for its age: the id stays.';
comment on column metersync.journal.aside is
  'Its outcome where that is neither pending nor applied; late where it was applied after more '
  'than a day.';
comment on column metersync.journal.aside_at is 'When that became so.';
comment on column metersync.journal.lacking is 'Readings that it reported and that were not found.';
comment on column metersync.journal.queue is
  'The kind, and the owner of the listing that has the record: a company, or the meter of a range '
  'of readings.';
comment on column metersync.journal.due_at is
  'The record of a pending event is not read again before this time.';

--> statement-breakpoint
create table metersync.listings (
  company_id uuid not null,
  resource text not null,
  proved_began timestamp(6) with time zone not null,
  constraint listings_company_id_resource_pk primary key (company_id, resource)
);

--> statement-breakpoint
comment on table metersync.listings is
  'The fence of each listing. Pages and absences of a walk that began before it are dropped.';
comment on column metersync.listings.company_id is
  'The company that lists the records, or zeros for the list of companies.';
comment on column metersync.listings.resource is 'Kind of the records.';
comment on column metersync.listings.proved_began is
  'When the newest walk over the listing began that was proved complete.';

--> statement-breakpoint
create table metersync.monthly_cost (
  company_id uuid not null,
  site_id uuid,
  meter_id text,
  datasource_type text,
  currency text,
  month date,
  cost numeric,
  days_in_month integer,
  days_covered integer,
  coverage numeric,
  days_overlapped integer,
  bills integer,
  bill_ids uuid[]
);

create index monthly_cost_company on metersync.monthly_cost (company_id);

--> statement-breakpoint
comment on table metersync.monthly_cost is 'Kept rows of analytics.monthly_cost.';

--> statement-breakpoint
create table metersync.monthly_usage (
  company_id uuid not null,
  site_id uuid,
  meter_id text,
  datasource_type text,
  month date,
  units text,
  billed_usage numeric,
  usage numeric,
  extrapolated_usage numeric,
  original_usage numeric,
  original_units text,
  generated_usage numeric,
  peak_demand numeric,
  days_in_month integer,
  days_covered integer,
  coverage numeric,
  days_overlapped integer,
  estimated_days integer,
  is_complete boolean,
  bills integer,
  bill_ids uuid[],
  peak_demand_units text,
  unmetered_source text
);

create index monthly_usage_company on metersync.monthly_usage (company_id);

--> statement-breakpoint
comment on table metersync.monthly_usage is 'Kept rows of analytics.monthly_usage.';

--> statement-breakpoint
create table metersync.operations (
  id bigint primary key generated always as identity,
  at timestamp(6) with time zone default clock_timestamp() not null,
  actor text not null,
  role text not null,
  source text not null,
  action text not null,
  target jsonb not null,
  outcome text,
  finished_at timestamp(6) with time zone,
  detail text,
  constraint operations_role check (role in ('viewer', 'operator')),
  constraint operations_source check (source in ('console', 'command')),
  constraint operations_outcome check (outcome in ('done', 'failed', 'refused')),
  constraint operations_end check ((outcome is null) = (finished_at is null))
);

create index operations_actor on metersync.operations (actor, id);

--> statement-breakpoint
comment on table metersync.operations is
  'Log of what people did, or were refused, with the console or the command. A trigger refuses '
  'other changes of it.';
comment on column metersync.operations.at is 'When it was asked for.';
comment on column metersync.operations.actor is
  'Who asked: a user of the console; of a command METERSYNC_ACTOR, else the user of the system.';
comment on column metersync.operations.role is 'viewer or operator: a viewer is refused.';
comment on column metersync.operations.source is 'console or command.';
comment on column metersync.operations.action is 'What was asked for, for example resume.';
comment on column metersync.operations.target is 'Of what: codes, ids, filters.';
comment on column metersync.operations.outcome is
  'done, failed or refused; NULL: it is under way, or its process ended first.';
comment on column metersync.operations.finished_at is 'When it ended.';
comment on column metersync.operations.detail is 'What it did, or why it did not.';

--> statement-breakpoint
create unlogged table metersync.pages (
  run_id uuid not null,
  company_id uuid not null,
  resource text not null,
  pass integer not null,
  asked integer not null,
  current_page integer not null,
  total bigint,
  has_next boolean not null,
  ids text[] not null,
  read_at timestamp(6) with time zone not null,
  constraint pages_run_id_company_id_resource_pass_asked_pk primary key (
    run_id, company_id, resource, pass, asked
  )
);

--> statement-breakpoint
comment on table metersync.pages is 'Manifest of a running pass; unlogged.';
comment on column metersync.pages.company_id is 'The company.';
comment on column metersync.pages.resource is 'The resource.';
comment on column metersync.pages.pass is 'Which pass over the listing.';
comment on column metersync.pages.asked is 'Page asked for.';
comment on column metersync.pages.current_page is 'Page that the service said it answered with.';
comment on column metersync.pages.total is 'Total that the service said.';
comment on column metersync.pages.has_next is 'Whether the service said that a page follows.';
comment on column metersync.pages.ids is 'Ids on the page.';
comment on column metersync.pages.read_at is 'When the read began.';

--> statement-breakpoint
create table metersync.rejected_records (
  resource text not null,
  record_id text not null,
  company_id uuid,
  error text not null,
  record text not null,
  rejected_at timestamp(6) with time zone default now() not null,
  constraint rejected_records_resource_record_id_pk primary key (resource, record_id)
);

--> statement-breakpoint
comment on table metersync.rejected_records is
  'Records that Postgres refused: NUL, impossible date, overflow.';
comment on column metersync.rejected_records.record_id is
  'Id of the record, or a hash of its text where it has none.';
comment on column metersync.rejected_records.company_id is 'Company in whose listing it stood.';
comment on column metersync.rejected_records.error is 'Postgres''s words.';
comment on column metersync.rejected_records.record is
  'The record''s text, with each \u0000 as the service sent it.';
comment on column metersync.rejected_records.rejected_at is 'When Postgres refused it last.';

--> statement-breakpoint
create table metersync.removed_readings (
  run_id uuid not null,
  meter_id text not null,
  start_at timestamp(6) with time zone not null,
  granularity_seconds integer not null,
  usage_units text not null,
  ordinal integer not null,
  usage numeric,
  quality text,
  updated timestamp(6) with time zone,
  synced_at timestamp(6) with time zone not null,
  unreadable jsonb
);

create index removed_readings_run on metersync.removed_readings (run_id);

--> statement-breakpoint
comment on table metersync.removed_readings is
  'Readings that were removed because the service no longer lists them, so that metersync deletes '
  'undo can bring them back.';
comment on column metersync.removed_readings.run_id is 'Run of the note in metersync.deletes.';
comment on column metersync.removed_readings.start_at is 'When the reading begins.';
comment on column metersync.removed_readings.granularity_seconds is 'Length in seconds.';
comment on column metersync.removed_readings.usage_units is 'Unit, as the service names it.';
comment on column metersync.removed_readings.ordinal is 'As in utility.intervals.';
comment on column metersync.removed_readings.usage is 'Exact amount in usage_units.';
comment on column metersync.removed_readings.quality is 'As in utility.intervals.';
comment on column metersync.removed_readings.updated is
  'When the service last changed it, where it says.';
comment on column metersync.removed_readings.synced_at is 'When the read began that brought it.';
comment on column metersync.removed_readings.unreadable is 'As in utility.intervals.';

--> statement-breakpoint
create table metersync.run_companies (
  run_id uuid not null,
  company_id uuid not null,
  refused boolean default false not null,
  constraint run_companies_run_id_company_id_pk primary key (run_id, company_id)
);

--> statement-breakpoint
comment on table metersync.run_companies is
  'Companies that were chosen for a run; a run of all has none.';
comment on column metersync.run_companies.company_id is 'The company.';
comment on column metersync.run_companies.refused is
  'Whether the service does not have it: it was not read.';

--> statement-breakpoint
create table metersync.run_lanes (
  run_id uuid not null,
  company_id uuid not null,
  lane integer not null,
  constraint run_lanes_run_id_company_id_pk primary key (run_id, company_id)
);

--> statement-breakpoint
comment on table metersync.run_lanes is
  'The companies that the lanes of a run under way have taken and not read to the end. Several '
  'lanes share the companies of a run.';
comment on column metersync.run_lanes.company_id is 'The company.';
comment on column metersync.run_lanes.lane is 'Number of the lane, from 0.';

--> statement-breakpoint
create table metersync.runs (
  run_id uuid not null,
  company_id uuid,
  resource text,
  kind text default 'full' not null,
  workflow_id text,
  state text not null,
  started_at timestamp(6) with time zone default now() not null,
  progress_at timestamp(6) with time zone,
  finished_at timestamp(6) with time zone,
  pages integer default 0 not null,
  passes integer default 0 not null,
  total_said bigint,
  distinct_ids bigint,
  rows_inserted bigint default 0 not null,
  rows_changed bigint default 0 not null,
  rows_unchanged bigint default 0 not null,
  rows_tombstoned bigint default 0 not null,
  rows_rejected bigint default 0 not null,
  rows_missed bigint default 0 not null,
  drift integer default 0 not null,
  requests integer default 0 not null,
  error text,
  error_code text,
  values_unreadable bigint default 0 not null,
  claimed_to uuid default '00000000-0000-0000-0000-000000000000' not null,
  constraint runs_key unique nulls not distinct (run_id, company_id, resource),
  constraint runs_kind check (kind in ('full', 'reconcile')),
  constraint runs_state check (state in ('running', 'complete', 'partial', 'suspect', 'failed'))
);

create index runs_company on metersync.runs (company_id, resource, finished_at);
create index runs_under_way on metersync.runs (run_id)
where finished_at is null;
create index runs_running on metersync.runs (company_id, started_at)
where state = 'running';
create index runs_failed on metersync.runs (finished_at)
where resource is not null and state in ('failed', 'partial');
create index runs_missed on metersync.runs (finished_at)
where company_id is not null and rows_missed > 0;

--> statement-breakpoint
comment on table metersync.runs is
  'One row for each run, and one for each company and resource in it.';
comment on column metersync.runs.company_id is 'NULL for the run itself and its list of companies.';
comment on column metersync.runs.resource is 'NULL for the run itself.';
comment on column metersync.runs.kind is 'full (everything) or reconcile (recent updates).';
comment on column metersync.runs.workflow_id is
  'Temporal workflow of the run, as temporal workflow show -w takes it; NULL for parts.';
comment on column metersync.runs.state is
  'running, complete, partial (a part failed), suspect (not proved complete) or failed.';
comment on column metersync.runs.progress_at is
  'When a part that reads intervals last stored a page.';
comment on column metersync.runs.passes is 'Passes over the listing until one was stable.';
comment on column metersync.runs.total_said is 'The service''s total in the last pass.';
comment on column metersync.runs.rows_tombstoned is 'Rows that the listing lacked.';
comment on column metersync.runs.rows_rejected is
  'Records that Postgres refused (rejected_records).';
comment on column metersync.runs.rows_missed is 'Changes that no event had reported.';
comment on column metersync.runs.drift is 'Pages that moved while they were read, over all passes.';
comment on column metersync.runs.requests is 'Requests that were sent to the service.';
comment on column metersync.runs.error_code is
  'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on column metersync.runs.values_unreadable is
  'Values that no column holds (unreadable in utility).';
comment on column metersync.runs.claimed_to is
  'The last company that a lane of the run has begun, in the order of the ids; zeros if none has, '
  'and for parts.';

--> statement-breakpoint
create or replace trigger keep_operation
before delete or update on metersync.operations for each row
execute function metersync.keep_operation();

create or replace trigger keep_operations
before truncate on metersync.operations for each statement
execute function metersync.keep_operation();

--> statement-breakpoint
create or replace trigger check_again
after insert or delete or update or truncate on ops.company_overrides for each statement
execute function metersync.check_all_again();

--> statement-breakpoint
create or replace trigger check_again
after insert or delete or update or truncate on ops.site_overrides for each statement
execute function metersync.check_all_again();

--> statement-breakpoint
create or replace trigger check_again
after insert or delete or update or truncate on ops.unit_factors for each statement
execute function metersync.check_all_again();

create or replace trigger note_changes
after insert or delete or update or truncate on ops.unit_factors for each statement
execute function metersync.note_changes();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.companies
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('companies');

create or replace trigger show_columns
before insert or update of raw on utility.companies for each row
execute function metersync.show_company('raw');

create or replace trigger show_deletion
before update of absent_since on utility.companies for each row
when ((new.synced_at > old.synced_at) is not true)
execute function metersync.show_company();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.connections
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('connections');

create or replace trigger show_columns
before insert or update of raw on utility.connections for each row
execute function metersync.show_connection('raw');

create or replace trigger show_hint
before update of hint_event_id, hint_settled_at, absent_since on utility.connections for each row
when ((new.synced_at > old.synced_at) is not true)
execute function metersync.show_connection();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.documents
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('documents');

create or replace trigger note_deletes
after delete on utility.documents
referencing old table as old_rows for each statement
execute function metersync.note_changes('company_id,site_id,created,raw,api_version,deleted_at');

create or replace trigger note_inserts
after insert on utility.documents
referencing new table as new_rows for each statement
execute function metersync.note_changes('company_id,site_id,created,raw,api_version,deleted_at');

create or replace trigger note_truncate
after truncate on utility.documents for each statement
execute function metersync.note_changes();

create or replace trigger note_updates
after update on utility.documents
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.note_updates_of_documents();

create or replace trigger show_columns
before insert or update of raw on utility.documents for each row
execute function metersync.show_document('raw');

create or replace trigger show_hint
before update of hint_event_id, hint_settled_at, absent_since on utility.documents for each row
when ((new.synced_at > old.synced_at) is not true)
execute function metersync.show_document();

create or replace trigger show_in_usage
after update on utility.documents for each row
when ((old.company_id, old.deleted_at) is distinct from (new.company_id, new.deleted_at))
execute function metersync.show_in_usage();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.meters
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('meters');

create or replace trigger note_deletes
after delete on utility.meters
referencing old table as old_rows for each statement
execute function metersync.note_changes('company_id,site_id,datasource_type,raw,deleted_at');

create or replace trigger note_inserts
after insert on utility.meters
referencing new table as new_rows for each statement
execute function metersync.note_changes('company_id,site_id,datasource_type,raw,deleted_at');

create or replace trigger note_truncate
after truncate on utility.meters for each statement
execute function metersync.note_changes();

create or replace trigger note_updates
after update on utility.meters
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.note_updates_of_meters();

create or replace trigger show_columns
before insert or update of raw on utility.meters for each row
execute function metersync.show_meter('raw');

create or replace trigger show_deletion
before update of absent_since on utility.meters for each row
when ((new.synced_at > old.synced_at) is not true)
execute function metersync.show_meter();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.sites
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('sites');

create or replace trigger show_columns
before insert or update of raw on utility.sites for each row
execute function metersync.show_site('raw');

create or replace trigger show_deletion
before update of absent_since on utility.sites for each row
when ((new.synced_at > old.synced_at) is not true)
execute function metersync.show_site();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.usage_data
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('usageData');

create or replace trigger note_deletes
after delete on utility.usage_data
referencing old table as old_rows for each statement
execute function metersync.note_changes(
  'company_id,document_id,meter_id,start_date,end_date,usage,usage_units,created,raw,deleted_at'
);

create or replace trigger note_inserts
after insert on utility.usage_data
referencing new table as new_rows for each statement
execute function metersync.note_changes(
  'company_id,document_id,meter_id,start_date,end_date,usage,usage_units,created,raw,deleted_at'
);

create or replace trigger note_truncate
after truncate on utility.usage_data for each statement
execute function metersync.note_changes();

create or replace trigger note_updates
after update on utility.usage_data
referencing old table as old_rows new table as new_rows for each statement
execute function metersync.note_updates_of_usage_data();

create or replace trigger show_columns
before insert or update of raw on utility.usage_data for each row
execute function metersync.show_usage('raw');

create or replace trigger show_deletion
before update of absent_since, document_deleted_at on utility.usage_data for each row
when ((new.synced_at > old.synced_at) is not true)
execute function metersync.show_usage();

--> statement-breakpoint
-- Exact definitions (SI, NIST SP 811, the international yard and pound, the Btu of the
-- International Table). Units of several meanings (M of MCF is a thousand) follow the trade.
insert into ops.unit_factors (units, dimension, standard_units, factor, source)
values
  ('J', 'energy', 'kWh', 1 / 3600000.0, 'definition'),
  ('kJ', 'energy', 'kWh', 1 / 3600.0, 'definition'),
  ('MJ', 'energy', 'kWh', 1 / 3.6, 'definition'),
  ('GJ', 'energy', 'kWh', 1000 / 3.6, 'definition'),
  ('TJ', 'energy', 'kWh', 1000000 / 3.6, 'definition'),
  ('erg', 'energy', 'kWh', 1 / 36000000000000.0, 'definition'),
  ('Cal', 'energy', 'kWh', 4.184 / 3600000, 'definition'),
  ('kCal', 'energy', 'kWh', 4.184 / 3600, 'definition'),
  ('MCal', 'energy', 'kWh', 4.184 / 3.6, 'definition'),
  ('Wh', 'energy', 'kWh', 0.001, 'definition'),
  ('kWh', 'energy', 'kWh', 1, 'definition'),
  ('MWh', 'energy', 'kWh', 1000, 'definition'),
  ('GWh', 'energy', 'kWh', 1000000, 'definition'),
  ('Btu', 'energy', 'kWh', 1055.05585262 / 3600000, 'definition'),
  ('MMBtu', 'energy', 'kWh', 1055.05585262 / 3.6, 'definition'),
  ('thm (EC)', 'energy', 'kWh', 105.505585262 / 3.6, 'definition'),
  ('thm (US)', 'energy', 'kWh', 105.4804 / 3.6, 'definition'),
  ('thm (UK)', 'energy', 'kWh', 105.505585257348 / 3.6, 'definition'),
  ('Dth (EC)', 'energy', 'kWh', 1055.05585262 / 3.6, 'definition'),
  ('Dth (US)', 'energy', 'kWh', 1054.804 / 3.6, 'definition'),
  ('Dth (UK)', 'energy', 'kWh', 1055.05585257348 / 3.6, 'definition'),
  ('ton hours', 'energy', 'kWh', 12.66067023144 / 3.6, 'definition'),
  ('W', 'power', 'kW', 0.001, 'definition'),
  ('KW', 'power', 'kW', 1, 'definition'),
  ('kW', 'power', 'kW', 1, 'definition'),
  ('MW', 'power', 'kW', 1000, 'definition'),
  ('GW', 'power', 'kW', 1000000, 'definition'),
  ('kVA', 'apparent power', 'kVA', 1, 'definition'),
  ('kVAR', 'reactive power', 'kVAR', 1, 'definition'),
  ('L', 'volume', 'cubic m', 0.001, 'definition'),
  ('kL', 'volume', 'cubic m', 1, 'definition'),
  ('ML', 'volume', 'cubic m', 1000, 'definition'),
  ('cubic m', 'volume', 'cubic m', 1, 'definition'),
  ('cubic ft', 'volume', 'cubic m', 0.028316846592, 'definition'),
  ('cubic yd', 'volume', 'cubic m', 0.764554857984, 'definition'),
  ('CF', 'volume', 'cubic m', 0.028316846592, 'definition'),
  ('CCF', 'volume', 'cubic m', 2.8316846592, 'definition'),
  ('HCF', 'volume', 'cubic m', 2.8316846592, 'definition'),
  ('MCF', 'volume', 'cubic m', 28.316846592, 'definition'),
  ('MMCF', 'volume', 'cubic m', 28316.846592, 'definition'),
  ('gal (US)', 'volume', 'cubic m', 0.003785411784, 'definition'),
  ('100 gal (US)', 'volume', 'cubic m', 0.3785411784, 'definition'),
  ('kgal (US)', 'volume', 'cubic m', 3.785411784, 'definition'),
  ('Mgal (US)', 'volume', 'cubic m', 3785.411784, 'definition'),
  ('gal (UK)', 'volume', 'cubic m', 0.00454609, 'definition'),
  ('100 gal (UK)', 'volume', 'cubic m', 0.454609, 'definition'),
  ('kgal (UK)', 'volume', 'cubic m', 4.54609, 'definition'),
  ('Mgal (UK)', 'volume', 'cubic m', 4546.09, 'definition'),
  ('bbl', 'volume', 'cubic m', 0.158987294928, 'definition'),
  ('mbbl', 'volume', 'cubic m', 158.987294928, 'definition'),
  ('g', 'mass', 'kg', 0.001, 'definition'),
  ('kg', 'mass', 'kg', 1, 'definition'),
  ('metric ton', 'mass', 'kg', 1000, 'definition'),
  ('tonne', 'mass', 'kg', 1000, 'definition'),
  ('lb', 'mass', 'kg', 0.45359237, 'definition'),
  ('mlb', 'mass', 'kg', 453.59237, 'definition'),
  ('oz t', 'mass', 'kg', 0.0311034768, 'definition'),
  ('tons (US)', 'mass', 'kg', 907.18474, 'definition'),
  ('sh ton', 'mass', 'kg', 907.18474, 'definition'),
  ('long tn', 'mass', 'kg', 1016.0469088, 'definition'),
  ('km', 'length', 'km', 1, 'definition'),
  ('m', 'length', 'km', 0.001, 'definition'),
  ('cm', 'length', 'km', 0.00001, 'definition'),
  ('mm', 'length', 'km', 0.000001, 'definition'),
  ('nm', 'length', 'km', 0.000000000001, 'definition'),
  ('mi', 'length', 'km', 1.609344, 'definition'),
  ('yd', 'length', 'km', 0.0009144, 'definition'),
  ('ft', 'length', 'km', 0.0003048, 'definition'),
  ('in.', 'length', 'km', 0.0000254, 'definition');
