-- All that changed between 0.1.0 and 0.2.0. Code of 0.1.0 writes to tables and keys that go: it has to be
-- stopped first. Therefore this migration names no floor, and may lock the tables while it runs.
-- rewrites: metersync.journal
-- squawk-ignore-file renaming-table, ban-drop-column, ban-drop-table, ban-drop-not-null, constraint-missing-not-valid, adding-field-with-default, adding-serial-primary-key-field, require-concurrent-index-creation, require-concurrent-index-deletion
--
-- Triggers run statements with a fixed text, so that a session plans each once. Before, each write of
-- records had them made and planned anew: a quarter of the time of a group of events. A later migration
-- that adds a column calls the two functions again that make those of a table.
--
-- The first makes what keeps the state that a change ends, in the transaction of the change. It ends
-- for an event that waits for the record or that came in this transaction, else for the run that is
-- reading the company. Arguments: the table, of utility and of history; the column that names the
-- record in the journal, null for none; the columns whose change makes another state.
create function metersync.make_history_of(resource text, named_by text, compared text[])
returns void
language plpgsql
as $make$
declare
  kept text := (
    select string_agg(quote_ident(attname), ', ' order by attnum)
    from pg_attribute
    where attrelid = format('history.%I', resource)::regclass
      and attnum > 0
      and not attisdropped
      and attgenerated = ''
      and attname not in ('valid_from', 'valid_to', 'ended_by_kind', 'ended_by')
  );
  before text := (select string_agg(format('o.%I', name), ', ') from unnest(compared) name);
  after text := (select string_agg(format('n.%I', name), ', ') from unnest(compared) name);
  company text := case resource when 'companies' then 'o.id' else 'o.company_id' end;
  -- An event that waits for the record, or that came in this transaction.
  event text := case
    when named_by is null then 'null::text'
    else format($event$(
          select e.id
          from metersync.journal e
          where e.record_id = o.%1$I::text
            and e.recorded_at >= least(now(), (
              select min(s.since)
              from metersync.stale_records s
              where s.key in ('connection/' || o.%1$I, 'document/' || o.%1$I)
            ))
          order by e.recorded_at desc
          limit 1
        )$event$, named_by)
  end;
begin
  -- However many rows there are, old and new ones are joined by a hash: a kept plan cannot know.
  execute format($function$
    create or replace function metersync.%1$I()
    returns trigger
    language plpgsql
    set enable_seqscan = off set enable_nestloop = off
    set enable_mergejoin = off
    as $keep$
    begin
      if not exists (select from old_rows) then
        return null;
      end if;
      insert into history.%2$I (%3$s, valid_from, valid_to, ended_by_kind, ended_by)
      with ended as (
        select
          o.*,
          %4$s as event,
          (
            select r.run_id::text
            from metersync.runs r
            where r.company_id = %5$s
              and r.state = 'running'
            order by r.started_at desc
            limit 1
          ) as run
        from old_rows o
          join new_rows n using (id)
        where (%6$s) is distinct from (%7$s)
      ), begun as (
        select
          *,
          coalesce(
            (select max(h.valid_to) from history.%2$I h where h.id = ended.id),
            first_synced_at
          ) as began,
          (select clock_timestamp()) as at
        from ended
      )
      select
        %3$s,
        began,
        greatest(at, began),
        case when event is not null then 'event' when run is not null then 'run' end,
        coalesce(event, run)
      from begun;
      return null;
    end
    $keep$
    $function$,
    'keep_history_of_' || resource, resource, kept, event, company, before, after);
end
$make$;

--> statement-breakpoint
select metersync.make_history_of(resource, named_by, compared)
from (
  values
    ('companies', null, '{external_id,public_id,name,raw,api_version,deleted_at}'::text[]),
    ('sites', null, '{company_id,name,raw,api_version,deleted_at}'),
    (
      'connections',
      'id',
      '{company_id,external_id,datasource,status,url,raw,api_version,deleted_at}'
    ),
    ('documents', 'id', '{company_id,site_id,raw,api_version,deleted_at}'),
    (
      'usage_data',
      'document_id',
      '{company_id,document_id,meter_id,start_date,end_date,usage,usage_units,raw,api_version,deleted_at}'
    ),
    (
      'meters',
      null,
      '{company_id,site_id,account_id,datasource_type,raw,api_version,deleted_at}'
    )
) tables(resource, named_by, compared);

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.companies REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history_of_companies();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.sites REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history_of_sites();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.connections REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history_of_connections();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.documents REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history_of_documents();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.usage_data REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history_of_usage_data();

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.meters REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history_of_meters();

--> statement-breakpoint
drop function metersync.keep_history();

--> statement-breakpoint
-- Makes the function of the trigger that notes the companies of updated records, of a table of
-- utility. Argument: the columns that months are worked out from.
create function metersync.make_notes_of(resource text, compared text[])
returns void
language plpgsql
as $make$
declare
  before text := (select string_agg(format('o.%I', name), ', ') from unnest(compared) name);
  after text := (select string_agg(format('n.%I', name), ', ') from unnest(compared) name);
begin
  execute format($function$
    create or replace function metersync.%1$I()
    returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    set enable_nestloop = off
    set enable_mergejoin = off
    as $note$
    begin
      if exists (select from old_rows) then
        insert into metersync.company_changes (company_id)
        select distinct c.company_id
        from old_rows o
          join new_rows n using (id)
          cross join lateral (values (o.company_id), (n.company_id)) c (company_id)
        where (%2$s) is distinct from (%3$s)
          and c.company_id is not null;
      end if;
      return null;
    end
    $note$
    $function$,
    'note_updates_of_' || resource, before, after);
end
$make$;

--> statement-breakpoint
select metersync.make_notes_of(resource, compared)
from (
  values
    ('documents', '{company_id,site_id,created,raw,api_version,deleted_at}'::text[]),
    (
      'usage_data',
      '{company_id,document_id,meter_id,start_date,end_date,usage,usage_units,created,raw,deleted_at}'
    ),
    ('meters', '{company_id,site_id,datasource_type,raw,deleted_at}')
) tables(resource, compared);

--> statement-breakpoint
create or replace trigger note_updates
after update on utility.documents REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.note_updates_of_documents();

--> statement-breakpoint
create or replace trigger note_updates
after update on utility.usage_data REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.note_updates_of_usage_data();

--> statement-breakpoint
create or replace trigger note_updates
after update on utility.meters REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.note_updates_of_meters();

--> statement-breakpoint
-- What the first backfill of all companies reads is no change of the contract. A run of chosen
-- companies saw too little of it. Fields are noted some time after they were read.
create or replace function metersync.note_contract_changes()
returns trigger
language plpgsql
as $$
declare
  baseline boolean := not exists (
    select
    from metersync.field_catalogue root
      join metersync.runs r on r.finished_at > root.first_seen_at
    where root.resource = new.resource
      and root.api_version = new.api_version
      and root.path = ''
      and r.company_id is null
      and r.resource is null
      and r.kind = 'full'
      and r.state <> 'failed'
      and r.finished_at < now() - interval '10 minutes'
      and not exists (
        select
        from metersync.run_companies chosen
        where chosen.run_id = r.run_id
      ));
begin
  if tg_op = 'INSERT' then
    insert into ops.contract_changes (resource, api_version, path, change, value, is_baseline)
    values (
      new.resource,
      new.api_version,
      new.path,
      case when new.path = '' then 'resource' else 'path' end,
      array_to_string(new.types, ', '),
      baseline
    );
    return null;
  end if;
  insert into ops.contract_changes (resource, api_version, path, change, value, is_baseline)
  select new.resource, new.api_version, new.path, 'type', type, baseline
  from unnest(new.types) type
  where type <> all (old.types)
  union all
  select new.resource, new.api_version, new.path, 'value', value, baseline
  from unnest(new.enum_values) value
  where value <> all (old.enum_values);
  return null;
end
$$;

--> statement-breakpoint
-- History looks for the run that reads a company with each row that changes. Without an index of its
-- own it read all parts of the company's runs, which are thousands after weeks of reconciles.
create index runs_running on metersync.runs(company_id, started_at)
where state = 'running';

--> statement-breakpoint
-- A catch-up looks for meters that only usage names. It read all usage of the company.
drop index utility.usage_data_company;

--> statement-breakpoint
create index usage_data_company on utility.usage_data(company_id, meter_id);

--> statement-breakpoint
-- Usage goes with its document. Before, usage that the document's record did not list stayed, and
-- without a listing of usage nothing else removed it.
update utility.usage_data u
set deleted_at = d.deleted_at,
  deleted_reason = 'document'
from utility.documents d
where d.id = u.document_id
  and d.deleted_at is not null
  and u.deleted_at is null;

--> statement-breakpoint
-- Each worker keeps its own limit of requests.
drop table "metersync"."service_gate";

--> statement-breakpoint
drop table "metersync"."service_workers";

--> statement-breakpoint
-- Several readings of one meter may share their start, length and unit, as those of a meter with
-- solar panels do: ordinal tells them apart. The key is built again for each month, which takes
-- about a second for a million readings.
alter table utility.intervals
add column ordinal integer default 0 not null;

--> statement-breakpoint
alter table utility.intervals
drop constraint intervals_meter_id_start_at_granularity_seconds_usage_units_pk;

--> statement-breakpoint
alter table utility.intervals
add constraint intervals_pk primary key (
  meter_id,
  start_at,
  granularity_seconds,
  usage_units,
  ordinal
);

--> statement-breakpoint
comment on column utility.intervals.ordinal is
  'Distinguishes readings with the same start, length and unit; 0 for the first or only one.';

--> statement-breakpoint
-- A proved listing of a meter removes the readings that it lacks. More than the cap wait for a
-- decision, as ranges with counts.
alter table metersync.deletes
add column meter_id text,
add column usage_units text,
add column starts_from timestamp(6) with time zone,
add column starts_before timestamp(6) with time zone,
add column readings bigint;

--> statement-breakpoint
create index deletes_meter on metersync.deletes(meter_id)
where meter_id is not null;

--> statement-breakpoint
comment on column metersync.deletes.meter_id is 'Meter of a range of readings; otherwise NULL.';
comment on column metersync.deletes.usage_units is 'Unit of a range of readings.';
comment on column metersync.deletes.starts_from is 'When the first reading of the range starts.';
comment on column metersync.deletes.starts_before is 'When the last reading of the range ends.';
comment on column metersync.deletes.readings is 'How many readings of the range are absent.';

--> statement-breakpoint
-- A read that began before another one removed readings may write them again: it has to find out.
alter table metersync.interval_fetches
add column removed_at timestamp(6) with time zone;

--> statement-breakpoint
comment on column metersync.interval_fetches.removed_at is
  'When readings of the meter were last removed.';

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

--> statement-breakpoint
create index removed_readings_run on metersync.removed_readings(run_id);

--> statement-breakpoint
comment on table metersync.removed_readings is
  'Readings that were removed because the service no longer lists them, so that metersync deletes '
  'undo can bring them back.';
comment on column metersync.removed_readings.run_id is 'Run of the note in metersync.deletes.';
comment on column metersync.removed_readings.meter_id is 'Meter.';
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

--> statement-breakpoint
-- A look sends what opened or closed to NOTIFY_URL, and notes it on the alarm.
drop table "metersync"."notifications";

--> statement-breakpoint
alter table "metersync"."alerts"
drop column "reminded_at";

--> statement-breakpoint
update metersync.alerts
set error = null
where error is not null;

--> statement-breakpoint
comment on column metersync.alerts.notified_at is
  'When NOTIFY_URL last took a change of it: that it opened, or is over.';

--> statement-breakpoint
comment on column metersync.alerts.error is
  'Why NOTIFY_URL has not taken its last change; null if it has, or was not asked.';

--> statement-breakpoint
-- The typed views are worked out from the catalogue of fields alone; `metersync migrate` makes them
-- again after this.
drop view if exists ops.typed_columns;

--> statement-breakpoint
drop function if exists metersync.make_typed_view(jsonb, boolean);

--> statement-breakpoint
drop function if exists metersync.is_typed_view(oid);

--> statement-breakpoint
drop function if exists metersync.within(text, jsonb, boolean);

--> statement-breakpoint
drop table "metersync"."typed_columns";

--> statement-breakpoint
drop table "metersync"."typed_views";

--> statement-breakpoint
-- Finds the documents that others name as their successor. Both statements wait for writers of
-- documents, and building the index takes a second for a million documents.
drop index "utility"."documents_revised";

--> statement-breakpoint
create index "documents_successor" on "utility"."documents" using btree("revised_document_id")
where revised_document_id is not null;

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
-- Rows that somebody decided to keep are left alone by runs, until a listing shows them again. Each
-- listing asks for them. There are few, so the index is built in no time.
create index "deletes_kept" on "metersync"."deletes" using btree("company_id", "resource")
where state in ('rejected', 'undone');

--> statement-breakpoint
-- A finding that somebody acknowledged does not count, unless it counts more than it did then.
alter table "metersync"."alerts"
add column "acknowledged_at" timestamp(6) with time zone,
add column "acknowledged_by" text,
add column "acknowledged_note" text,
add column "acknowledged_counts" jsonb;

--> statement-breakpoint
comment on column metersync.alerts.acknowledged_at is 'When somebody acknowledged it; NULL if nobody did.';
comment on column metersync.alerts.acknowledged_by is 'Who acknowledged it.';
comment on column metersync.alerts.acknowledged_note is 'Why.';
comment on column metersync.alerts.acknowledged_counts is 'What it counted then: more is news.';

--> statement-breakpoint
-- Receivers report through Temporal what they refused. Before the first look the row has no time.
alter table "metersync"."heartbeat"
alter column "at" drop not null,
add column "refused" jsonb,
add column "refused_since" timestamp(6) with time zone,
add column "refused_until" timestamp(6) with time zone;

--> statement-breakpoint
comment on column metersync.heartbeat.refused is 'Signed deliveries that receivers refused, by reason.';
comment on column metersync.heartbeat.refused_since is 'When the first of them was reported.';
comment on column metersync.heartbeat.refused_until is 'When the last of them was reported.';

--> statement-breakpoint
-- Each event's outcome is stored with it. Until now it was worked out from the journal and a log of
-- settlements, by ranges of time. The journal's table keeps the payloads, which are not written again,
-- and gets another name; a narrow table takes its name and all other columns. Building that takes about
-- 40 seconds for a million events.
--
-- The views that read these tables get their new text right after the migrations. Until then they keep
-- their columns, grants and dependents, and have no rows.
do $do$
declare
  view_name text;
  columns text;
begin
  foreach view_name in array array['metersync.events', 'ops.freshness'] loop
    select string_agg(
      format('null::%s as %I', format_type(atttypid, atttypmod), attname), ', ' order by attnum
    )
    into columns
    from pg_attribute
    where attrelid = to_regclass(view_name)
      and attnum > 0
      and not attisdropped;
    if columns is not null then
      execute format('create or replace view %s as select %s where false', view_name, columns);
    end if;
  end loop;
end
$do$;

--> statement-breakpoint
alter table "metersync"."journal" rename to "event_payloads";

--> statement-breakpoint
alter table "metersync"."event_payloads" rename constraint "journal_pkey" to "event_payloads_pkey";

--> statement-breakpoint
drop index "metersync"."journal_record";

--> statement-breakpoint
drop index "metersync"."journal_received";

--> statement-breakpoint
drop index "metersync"."journal_company";

--> statement-breakpoint
drop index "metersync"."journal_unhappy";

--> statement-breakpoint
drop index "metersync"."journal_with_payload";

--> statement-breakpoint
create table "metersync"."journal" (
  "id" text not null,
  "type" text not null,
  "kind" text not null,
  "record_id" text,
  "company_id" uuid,
  "occurred_at" timestamp(6) with time zone,
  "range_start" timestamp(6) with time zone,
  "range_end" timestamp(6) with time zone,
  "received_at" timestamp(6) with time zone not null,
  "recorded_at" timestamp(6) with time zone default clock_timestamp() not null,
  "settled_at" timestamp(6) with time zone,
  "outcome" text not null,
  "error" text,
  "error_code" text,
  "attempts" integer default 0 not null,
  "interval_count" bigint,
  "intervals_found" bigint,
  "workflow_id" text,
  "workflow_run_id" text,
  "payload_dropped_at" timestamp(6) with time zone,
  "aside" text generated always as (
    case
      when outcome in ('superseded', 'ignored', 'dead', 'missing') then outcome
      when settled_at - received_at > interval '1 day' then 'late'
    end
  ) stored,
  "aside_at" timestamp(6) with time zone generated always as (
    case
      when outcome in ('superseded', 'ignored', 'dead', 'missing')
      or settled_at - received_at > interval '1 day' then coalesce(settled_at, recorded_at)
    end
  ) stored,
  "lacking" bigint generated always as (
    case
      when intervals_found < interval_count then interval_count - intervals_found
    end
  ) stored,
  constraint "journal_outcome" check (
    outcome in ('pending', 'applied', 'superseded', 'ignored', 'dead', 'missing')
  ),
  constraint "journal_ranges_have_a_length" check (range_end >= range_start),
  constraint "journal_dead_say_why" check (
    outcome <> 'dead'
    or error is not null
  )
)
-- Room on each page for the new version of a row, which then needs no entry in any index.
with
  (fillfactor = 60);

--> statement-breakpoint
-- The plan of the next statement must not be one for few settlements. An empty table is not analysed:
-- plans would take it for empty later on.
do $do$
begin
  if exists (select from metersync.settlements) then
    analyze metersync.settlements;
  end if;
end
$do$;

--> statement-breakpoint
-- What the view of events said of each: the first settlement of its record that covers it, but one that
-- gave it up only where no other does.
insert into metersync.journal (
  id, type, kind, record_id, company_id, occurred_at, range_start, range_end, received_at, recorded_at,
  settled_at, outcome, error, error_code, attempts, interval_count, intervals_found, workflow_id,
  workflow_run_id, payload_dropped_at
)
select
  e.id,
  e.type,
  e.kind,
  e.record_id,
  e.company_id,
  e.occurred_at,
  e.range_start,
  e.range_end,
  e.received_at,
  e.recorded_at,
  done.settled_at,
  case
    when e.arrived_as <> 'pending' then e.arrived_as
    when done.outcome = 'superseded' and e.type = 'document.deleted.v2' then 'applied'
    else coalesce(done.outcome, 'pending')
  end,
  coalesce(e.error, done.error),
  coalesce(e.error_code, done.error_code),
  coalesce(done.attempts, 0),
  e.interval_count,
  done.intervals_found,
  e.workflow_id,
  e.workflow_run_id,
  e.payload_dropped_at
from metersync.event_payloads e
  left join lateral (
    select s.outcome, s.settled_at, s.error, s.error_code, s.attempts, s.intervals_found
    from metersync.settlements s
    where e.arrived_as = 'pending'
      and s.kind = e.kind
      and s.record_id = case e.kind when 'interval' then e.id else e.record_id end
      and e.recorded_at between s.since and s.read_at
      and s.shown >= coalesce(e.occurred_at, '-infinity')
      and not (s.updates_only and e.type = 'document.deleted.v2')
    order by s.outcome in ('missing', 'dead'), s.settled_at, s.shown
    limit 1
  ) done on true
order by e.received_at;

--> statement-breakpoint
alter table "metersync"."journal"
add constraint "journal_pkey" primary key ("id");

--> statement-breakpoint
create index "journal_record" on "metersync"."journal" using btree("record_id", "recorded_at");

--> statement-breakpoint
create index "journal_received" on "metersync"."journal" using btree("received_at", "id");

--> statement-breakpoint
create index "journal_company" on "metersync"."journal" using btree("company_id", "received_at", "id")
where company_id is not null;

--> statement-breakpoint
create index "journal_aside" on "metersync"."journal" using btree("aside", "aside_at", "id")
where aside is not null;

--> statement-breakpoint
create index "journal_missing" on "metersync"."journal" using btree("record_id")
where aside = 'missing';

--> statement-breakpoint
create index "journal_lacking" on "metersync"."journal" using btree("record_id")
where lacking is not null;

--> statement-breakpoint
create index "journal_with_payload" on "metersync"."journal" using btree("received_at")
where payload_dropped_at is null;

--> statement-breakpoint
do $do$
begin
  if exists (select from metersync.journal) then
    analyze metersync.journal;
  end if;
end
$do$;

--> statement-breakpoint
drop table "metersync"."settlements";

--> statement-breakpoint
delete from metersync.event_payloads
where payload is null
  and body is null;

--> statement-breakpoint
alter table "metersync"."event_payloads"
drop constraint "journal_arrived_as",
drop constraint "journal_ranges_have_a_length",
drop constraint "journal_dead_say_why",
drop constraint "journal_keeps_bytes",
drop column "type",
drop column "kind",
drop column "record_id",
drop column "company_id",
drop column "occurred_at",
drop column "range_start",
drop column "range_end",
drop column "received_at",
drop column "recorded_at",
drop column "arrived_as",
drop column "error",
drop column "error_code",
drop column "interval_count",
drop column "workflow_id",
drop column "workflow_run_id",
drop column "payload_dropped_at",
add constraint "event_payloads_keep_bytes" check (
  payload is not null
  or body is not null
);

--> statement-breakpoint
comment on table metersync.event_payloads is
  'What each event of the journal said, until it is dropped for its age.';
comment on column metersync.event_payloads.id is 'The event.';
comment on column metersync.event_payloads.payload is
  'Its payload; NULL where Postgres cannot hold it: then body has its bytes.';
comment on column metersync.event_payloads.body is
  'The exact bytes of a payload that jsonb cannot hold.';

comment on table metersync.journal is 'The journal: each verified event once, with what became of it.';
comment on column metersync.journal.id is
  'Message id of the delivery: the same on every attempt.';
comment on column metersync.journal.type is
  'Type of the event; derived from its shape where the payload names none; else unknown.';
comment on column metersync.journal.kind is 'connection, document, interval or ignored.';
comment on column metersync.journal.record_id is
  'Connection, document or meter that the event is about.';
comment on column metersync.journal.company_id is 'Company that the payload names.';
comment on column metersync.journal.occurred_at is 'updated of the record in the payload.';
comment on column metersync.journal.range_start is 'Start of a synced interval range.';
comment on column metersync.journal.range_end is 'End of a synced interval range.';
comment on column metersync.journal.received_at is
  'When the receiver had the request (its clock).';
comment on column metersync.journal.recorded_at is
  'When the event entered the journal (the warehouse''s clock).';
comment on column metersync.journal.settled_at is
  'When a read of its record settled it, or it was given up; NULL while it waits, and where it never had to.';
comment on column metersync.journal.outcome is
  'pending, applied, superseded, ignored, dead or missing, as metersync.events explains.';
comment on column metersync.journal.error is 'Why it is dead or missing.';
comment on column metersync.journal.error_code is
  'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on column metersync.journal.attempts is
  'Unsuccessful attempts to read its record before it was settled.';
comment on column metersync.journal.interval_count is
  'Readings that the event said its range has.';
comment on column metersync.journal.intervals_found is
  'Readings that the warehouse had in the range when it was fetched.';
comment on column metersync.journal.workflow_id is 'Temporal workflow that recorded the event.';
comment on column metersync.journal.workflow_run_id is 'Its run.';
comment on column metersync.journal.payload_dropped_at is
  'When its payload was dropped for its age: the id stays.';
comment on column metersync.journal.aside is
  'Its outcome where that is neither pending nor applied; late where it was applied after more than a day.';
comment on column metersync.journal.aside_at is 'When that became so.';
comment on column metersync.journal.lacking is
  'Readings that it reported and that were not found.';

--> statement-breakpoint
-- Issues are listed by what they may cost. Checks write few issues, so the column and the index are built in
-- a moment.
drop index "ops"."data_issues_new";
--> statement-breakpoint
alter table "ops"."data_issues"
add column "may_cost" numeric generated always as (coalesce((evidence ->> 'may_cost')::numeric, 0)) stored not null;
--> statement-breakpoint
create index "data_issues_new" on "ops"."data_issues" using btree(
  "check_name", "severity", "may_cost", "opened_at", "id"
)
where closed_at is null
  and acknowledged_at is null;
--> statement-breakpoint
comment on column ops.data_issues.may_cost is
  'What a gap between bills may cost, by the usual cost of a day, in the currency of its evidence; otherwise 0.';

--> statement-breakpoint
-- When the months of a company were worked out is noted with its changes.
alter table "metersync"."company_changes"
add column "is_kept" boolean default false not null;

--> statement-breakpoint
drop index "metersync"."company_changes_at";

--> statement-breakpoint
create index "company_changes_waiting" on "metersync"."company_changes" using btree("changed_at")
where not is_kept;

--> statement-breakpoint
comment on table metersync.company_changes is
  'Companies whose records changed since their months were worked out, and when the months of each company were.';
comment on column metersync.company_changes.changed_at is 'When it was written, or the months were worked out.';
comment on column metersync.company_changes.is_kept is 'Whether the months were worked out then.';
--> statement-breakpoint
comment on column metersync.also_listed.company_id is
  'The company whose listing shows it, and that was not its owner then.';
