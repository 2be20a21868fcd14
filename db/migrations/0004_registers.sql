-- The columns of records are computed from what was read (raw) and, for connections and documents, from what
-- the newest event announced (hint). Triggers do this before each write of these two, so that no statement
-- forgets or contradicts it. Code of 0.2 writes such columns itself and has to be stopped first. Therefore
-- this migration names no floor, and may lock the tables while it creates indexes.
-- squawk-ignore-file require-concurrent-index-creation
--
-- When the service last changed a record, as the record says. Inlined into a statement, the function for times
-- would look up the field once for each form of a time: 26 µs for a document of 4 kB instead of 8.
create function metersync.updated_of(record jsonb)
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
create function metersync.unread_text(sent text, is_read boolean)
returns text
language sql immutable parallel safe
begin atomic
  select
    case
      when sent <> ''
        and not is_read then nullif(left(btrim(sent, e' \t\n\v\f\r'), 200), '')
    end;
end;

--> statement-breakpoint
-- The id of a part of a record if it is not a UUID. A part with such an id has no row.
create function metersync.odd_id(sent text)
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
-- A text for an indexed column: NULL if it is too long, because Postgres refuses entries of 2,704 bytes.
create function metersync.indexable(sent text)
returns text
language sql immutable parallel safe
begin atomic
  select case when length(sent) <= 500 then sent end;
end;

--> statement-breakpoint
-- The company that a record, or the document in a usage record, names.
create function metersync.company_sent(record jsonb)
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
create function metersync.document_sent(record jsonb)
returns text
language sql immutable parallel safe
begin atomic
  select coalesce(metersync.id_of(record -> 'document'), record ->> 'documentId');
end;

--> statement-breakpoint
-- Fields with their texts as JSON; NULL if there are none.
create function metersync.unreadable_of(fields jsonb)
returns jsonb
language sql immutable parallel safe
begin atomic
  select nullif(jsonb_strip_nulls(fields), '{}');
end;

--> statement-breakpoint
-- Adds the texts of a record that were replaced to its fields that could not be read.
create function metersync.with_replaced(unread jsonb, replaced jsonb)
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
-- What the columns of a row say if its record is as given. Each function never fails: an odd value costs its
-- column, and not the record. They are in PL/pgSQL, because for each row a trigger would plan the functions of
-- SQL again that are not made part of a statement. Each text is taken from the record once. Few records have an
-- odd value, so unreadable is built only if a text has no value: then there are more NULLs among the values.
-- In most records both times are the same. Then they are read once, because reading a time costs 6 µs.
create function metersync.read_company(
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
create function metersync.read_site(record jsonb, out name text, out unreadable jsonb)
language plpgsql stable parallel safe
as $$
begin
  name := record ->> 'name';
end
$$;

--> statement-breakpoint
create function metersync.read_connection(
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
  updated := case when updated_sent = created_sent then created else metersync.read_time(updated_sent) end;
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
create function metersync.read_meter(
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
-- A document belongs to the site that it names, or otherwise to the site that its first usage row names.
create function metersync.read_document(
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
  updated := case when updated_sent = created_sent then created else metersync.read_time(updated_sent) end;
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
create function metersync.read_usage(
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
  updated := case when updated_sent = created_sent then created else metersync.read_time(updated_sent) end;
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
-- How far an answer of the API may lag behind the service, together with the difference of the clocks: longer
-- than the attempts for an event. Only reads that are further apart can show that the service went back to an
-- older state.
create function metersync.api_lag()
returns interval
language sql immutable parallel safe
begin atomic
  select interval '2 hours';
end;

--> statement-breakpoint
-- Since when a read certainly shows its state: since the record was updated, but not earlier than the lag of
-- the API before the read, and not later than the read began. Of two reads, the later of these wins.
create function metersync.shows_since(updated timestamptz, began timestamptz)
returns timestamptz
language sql stable parallel safe
begin atomic
  select greatest(
      began - metersync.api_lag(),
      case when updated is not null then least(updated, began) end
    );
end;

--> statement-breakpoint
-- Whether a read ends the deletion that an event announced: it shows a newer state, or it began so much later
-- that it no longer lags behind the deletion.
create function metersync.ends_deletion(
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
-- Whether the deletion that an event announced lasts. A record that was never read has no read to end it.
create function metersync.deletion_lasts(
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
-- Whether the columns show a hint: until a read shows its state or a newer one, or its event is given up.
create function metersync.shows_hint(
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
-- A row is deleted while its record is absent. Only the trigger of raw has an argument. Without it, raw is as
-- before and is not read again.
create function metersync.show_company()
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
create function metersync.show_site()
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
create function metersync.show_meter()
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
-- What writes usage says its owner and its document. Usage is also deleted with its document, unless a later
-- read found it.
create function metersync.show_usage()
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
  elsif new.document_deleted_at is not null and new.synced_at > new.document_deleted_at is not true then
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
-- Usage belongs to the company of its document, and is deleted and restored with it. Without the setting, a
-- session would keep the plan that it made while the table was empty.
create function metersync.show_in_usage()
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
-- A hint never decides who owns a record that was read. The row of a record that was proved gone shows what was
-- announced before; the hint ends when the record is back. What writes raw or a hint puts the texts that were
-- replaced in it into unreadable. Only the trigger of raw has an argument. Without it, raw is as before, and is
-- not read again if the columns show it already or show the hint: a row has it compressed.
create function metersync.show_connection()
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
create function metersync.show_document()
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
alter table "utility"."companies"
add column "absent_since" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."companies"
add column "absent_by" text;

--> statement-breakpoint
alter table "utility"."sites"
add column "absent_since" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."sites"
add column "absent_by" text;

--> statement-breakpoint
alter table "utility"."connections"
add column "absent_since" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."connections"
add column "absent_by" text;

--> statement-breakpoint
alter table "utility"."documents"
add column "absent_since" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."documents"
add column "absent_by" text;

--> statement-breakpoint
alter table "utility"."meters"
add column "absent_since" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."meters"
add column "absent_by" text;

--> statement-breakpoint
alter table "utility"."usage_data"
add column "absent_since" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."usage_data"
add column "absent_by" text;

--> statement-breakpoint
alter table "utility"."usage_data"
add column "document_deleted_at" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."connections"
add column "hint_event_id" text;

--> statement-breakpoint
alter table "utility"."connections"
add column "hint" jsonb;

--> statement-breakpoint
alter table "utility"."connections"
add column "hint_updated" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."connections"
add column "hint_deletes" boolean;

--> statement-breakpoint
alter table "utility"."connections"
add column "hint_came" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."connections"
add column "hint_settled_at" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."documents"
add column "hint_event_id" text;

--> statement-breakpoint
alter table "utility"."documents"
add column "hint" jsonb;

--> statement-breakpoint
alter table "utility"."documents"
add column "hint_updated" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."documents"
add column "hint_deletes" boolean;

--> statement-breakpoint
alter table "utility"."documents"
add column "hint_came" timestamp(6) with time zone;

--> statement-breakpoint
alter table "utility"."documents"
add column "hint_settled_at" timestamp(6) with time zone;

--> statement-breakpoint
comment on column utility.companies.absent_since is
  'When the record was found to be gone; NULL while it is there.';

--> statement-breakpoint
comment on column utility.companies.absent_by is
  'absent: complete, stable listings lack it; listed: among deleted ones; not_found: 404.';

--> statement-breakpoint
comment on column utility.sites.absent_since is
  'When the record was found to be gone; NULL while it is there.';

--> statement-breakpoint
comment on column utility.sites.absent_by is
  'absent: complete, stable listings lack it; listed: among deleted ones; not_found: 404.';

--> statement-breakpoint
comment on column utility.connections.absent_since is
  'When the record was found to be gone; NULL while it is there.';

--> statement-breakpoint
comment on column utility.connections.absent_by is
  'absent: complete, stable listings lack it; listed: among deleted ones; not_found: 404.';

--> statement-breakpoint
comment on column utility.documents.absent_since is
  'When the record was found to be gone; NULL while it is there.';

--> statement-breakpoint
comment on column utility.documents.absent_by is
  'absent: complete, stable listings lack it; listed: among deleted ones; not_found: 404.';

--> statement-breakpoint
comment on column utility.meters.absent_since is
  'When the record was found to be gone; NULL while it is there.';

--> statement-breakpoint
comment on column utility.meters.absent_by is
  'absent: complete, stable listings lack it; listed: among deleted ones; not_found: 404.';

--> statement-breakpoint
comment on column utility.usage_data.absent_since is
  'When the record was found to be gone; NULL while it is there.';

--> statement-breakpoint
comment on column utility.usage_data.absent_by is
  'absent: complete, stable listings lack it; listed: among deleted ones; not_found: 404.';

--> statement-breakpoint
comment on column utility.usage_data.document_deleted_at is 'deleted_at of its document.';

--> statement-breakpoint
comment on column utility.connections.hint_event_id is
  'Id of the newest event about the record that came before a read showed its state.';

--> statement-breakpoint
comment on column utility.connections.hint is
  'Payload of this event, while the columns show it; otherwise NULL.';

--> statement-breakpoint
comment on column utility.connections.hint_updated is
  'updated of the record in this event.';

--> statement-breakpoint
comment on column utility.connections.hint_deletes is 'Whether this event deletes the record.';

--> statement-breakpoint
comment on column utility.connections.hint_came is 'When this event was recorded.';

--> statement-breakpoint
comment on column utility.connections.hint_settled_at is
  'When this event was given up, because the service never showed its state.';

--> statement-breakpoint
comment on column utility.documents.hint_event_id is
  'Id of the newest event about the record that came before a read showed its state.';

--> statement-breakpoint
comment on column utility.documents.hint is
  'Payload of this event, while the columns show it; otherwise NULL.';

--> statement-breakpoint
comment on column utility.documents.hint_updated is
  'updated of the record in this event.';

--> statement-breakpoint
comment on column utility.documents.hint_deletes is 'Whether this event deletes the record.';

--> statement-breakpoint
comment on column utility.documents.hint_came is 'When this event was recorded.';

--> statement-breakpoint
comment on column utility.documents.hint_settled_at is
  'When this event was given up, because the service never showed its state.';

--> statement-breakpoint
alter table "utility"."connections"
add column "listed_by" uuid;

--> statement-breakpoint
alter table "utility"."documents"
add column "listed_by" uuid;

--> statement-breakpoint
alter table "utility"."meters"
add column "listed_by" uuid;

--> statement-breakpoint
alter table "utility"."usage_data"
add column "listed_by" uuid;

--> statement-breakpoint
create index "connections_listed_by" on "utility"."connections" using btree("listed_by")
where listed_by is not null;

--> statement-breakpoint
create index "documents_listed_by" on "utility"."documents" using btree("listed_by")
where listed_by is not null;

--> statement-breakpoint
create index "meters_listed_by" on "utility"."meters" using btree("listed_by")
where listed_by is not null;

--> statement-breakpoint
create index "usage_data_listed_by" on "utility"."usage_data" using btree("listed_by")
where listed_by is not null;

--> statement-breakpoint
comment on column utility.connections.listed_by is
  'The company whose listing shows this record; NULL if it is the owner.';

--> statement-breakpoint
comment on column utility.documents.listed_by is
  'The company whose listing shows this record; NULL if it is the owner.';

--> statement-breakpoint
comment on column utility.meters.listed_by is
  'The company whose listing shows this record; NULL if it is the owner.';

--> statement-breakpoint
comment on column utility.usage_data.listed_by is
  'The company whose listing shows this record; NULL if it is the owner.';

--> statement-breakpoint
alter table "metersync"."also_listed"
add column "raw" jsonb;

--> statement-breakpoint
alter table "metersync"."also_listed"
add column "digest" "bytea";

--> statement-breakpoint
alter table "metersync"."also_listed"
add column "api_version" text;

--> statement-breakpoint
alter table "metersync"."also_listed"
add column "read_at" timestamp(6) with time zone;

--> statement-breakpoint
comment on table metersync.also_listed is
  'Records that a company lists although their rows show what another company lists.';

--> statement-breakpoint
comment on column metersync.also_listed.company_id is 'The company that lists it.';

--> statement-breakpoint
comment on column metersync.also_listed.raw is
  'The record as this company lists it. NULL if metersync 0.2 noted that it does.';

--> statement-breakpoint
comment on column metersync.also_listed.digest is 'Digest of the record as it was sent.';

--> statement-breakpoint
comment on column metersync.also_listed.api_version is 'Version of the API that sent it.';

--> statement-breakpoint
comment on column metersync.also_listed.read_at is 'When it was read.';

--> statement-breakpoint
-- What was proved before this migration stands in the columns, too.
update utility.companies
set
  absent_since = deleted_at,
  absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

--> statement-breakpoint
update utility.sites
set
  absent_since = deleted_at,
  absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

--> statement-breakpoint
update utility.connections
set
  absent_since = deleted_at,
  absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

--> statement-breakpoint
update utility.documents
set
  absent_since = deleted_at,
  absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

--> statement-breakpoint
update utility.meters
set
  absent_since = deleted_at,
  absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

--> statement-breakpoint
update utility.usage_data
set
  absent_since = deleted_at,
  absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

--> statement-breakpoint
update utility.usage_data u
set document_deleted_at = d.deleted_at
from utility.documents d
where u.document_id = d.id
  and d.deleted_at is not null;

--> statement-breakpoint
-- A row whose document is live again lost its tombstone with it, or is gone itself.
update utility.usage_data
set
  absent_since = deleted_at,
  absent_by = 'absent'
where deleted_reason = 'document'
  and document_deleted_at is null;

--> statement-breakpoint
-- What events announced before this migration stands in the columns.
update utility.connections r
set
  hint_event_id = e.id,
  hint = jsonb_strip_nulls(
    jsonb_build_object(
      'company', r.company_id,
      'externalId', r.external_id,
      'datasource', r.datasource,
      'status', r.status,
      'url', r.url,
      'created', r.created,
      'updated', r.updated
    )
  ),
  hint_updated = r.updated,
  hint_deletes = false,
  hint_came = e.recorded_at
from (
    select c.id as row_id, named.id, coalesce(named.recorded_at, c.first_synced_at) as recorded_at
    from utility.connections c
      left join lateral (
        select j.id, j.recorded_at
        from metersync.journal j
        where j.record_id = c.id::text
          and j.kind = 'connection'
          and j.occurred_at = c.updated
        order by j.recorded_at desc
        limit 1
      ) named on true
    where c.updated > c.raw_updated
      or c.raw is null
  ) e
where r.id = e.row_id
  and r.updated is not null
  and r.deleted_at is null;

--> statement-breakpoint
update utility.documents r
set
  hint_event_id = e.id,
  hint = jsonb_strip_nulls(
    jsonb_build_object(
      'company', r.company_id,
      'site', r.site_id,
      'created', r.created,
      'updated', r.updated
    )
  ),
  hint_updated = r.updated,
  hint_deletes = coalesce(r.deleted_reason = 'event', false),
  hint_came = coalesce(case r.deleted_reason when 'event' then r.deleted_at end, e.recorded_at)
from (
    select c.id as row_id, named.id, coalesce(named.recorded_at, c.first_synced_at) as recorded_at
    from utility.documents c
      left join lateral (
        select j.id, j.recorded_at
        from metersync.journal j
        where j.record_id = c.id::text
          and j.kind = 'document'
          and j.occurred_at = c.updated
        order by j.recorded_at desc
        limit 1
      ) named on true
    where c.updated > c.raw_updated
      or c.raw is null
      or c.deleted_reason = 'event'
  ) e
where r.id = e.row_id
  and r.updated is not null
  and (r.deleted_at is null or r.deleted_reason = 'event');

--> statement-breakpoint
-- A later read writes raw, and its trigger computes all columns. The other trigger of the table would repeat this.
create trigger show_columns
before insert or update of raw on utility.companies for each row
execute function metersync.show_company('raw');

--> statement-breakpoint
create trigger show_columns
before insert or update of raw on utility.sites for each row
execute function metersync.show_site('raw');

--> statement-breakpoint
create trigger show_columns
before insert or update of raw on utility.connections for each row
execute function metersync.show_connection('raw');

--> statement-breakpoint
create trigger show_hint
before update of hint_event_id, hint_settled_at, absent_since on utility.connections for each row when (
  (new.synced_at > old.synced_at) is not true
)
execute function metersync.show_connection();

--> statement-breakpoint
create trigger show_columns
before insert or update of raw on utility.documents for each row
execute function metersync.show_document('raw');

--> statement-breakpoint
create trigger show_hint
before update of hint_event_id, hint_settled_at, absent_since on utility.documents for each row when (
  (new.synced_at > old.synced_at) is not true
)
execute function metersync.show_document();

--> statement-breakpoint
create trigger show_columns
before insert or update of raw on utility.meters for each row
execute function metersync.show_meter('raw');

--> statement-breakpoint
create trigger show_columns
before insert or update of raw on utility.usage_data for each row
execute function metersync.show_usage('raw');

--> statement-breakpoint
create trigger show_deletion
before update of absent_since on utility.companies for each row when (
  (new.synced_at > old.synced_at) is not true
)
execute function metersync.show_company();

--> statement-breakpoint
create trigger show_deletion
before update of absent_since on utility.sites for each row when (
  (new.synced_at > old.synced_at) is not true
)
execute function metersync.show_site();

--> statement-breakpoint
create trigger show_deletion
before update of absent_since on utility.meters for each row when (
  (new.synced_at > old.synced_at) is not true
)
execute function metersync.show_meter();

--> statement-breakpoint
create trigger show_deletion
before update of absent_since, document_deleted_at on utility.usage_data for each row when (
  (new.synced_at > old.synced_at) is not true
)
execute function metersync.show_usage();

--> statement-breakpoint
create trigger show_in_usage
after update on utility.documents for each row when (
  (old.company_id, old.deleted_at) is distinct from (new.company_id, new.deleted_at)
)
execute function metersync.show_in_usage();
