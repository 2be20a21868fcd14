-- Upgrades a warehouse of 0.2 to the schema of 0000_baseline.sql, in one transaction: first come
-- the functions of that file, then this file, then the triggers and comments of that file. Workers
-- of 0.2 have to be stopped first, so tables may be locked. `metersync migrate` says beforehand how
-- long it takes to rewrite these tables:
-- rewrites: history.companies
-- rewrites: history.connections
-- rewrites: history.documents, 5000 rows a second
-- rewrites: history.meters
-- rewrites: history.sites
-- rewrites: history.usage_data
-- rewrites: metersync.journal, 100000 rows a second
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion
-- squawk-ignore-file constraint-missing-not-valid, ban-drop-table, ban-drop-column, renaming-table
--
-- A row is three registers: what was read (raw), what the newest event announced (hint), and since
-- when it is proved gone (absent).
alter table utility.companies
  add column absent_since timestamp(6) with time zone,
  add column absent_by text;

alter table utility.sites
  add column absent_since timestamp(6) with time zone,
  add column absent_by text;

alter table utility.connections
  add column absent_since timestamp(6) with time zone,
  add column absent_by text,
  add column hint_event_id text,
  add column hint jsonb,
  add column hint_updated timestamp(6) with time zone,
  add column hint_deletes boolean,
  add column hint_came timestamp(6) with time zone,
  add column hint_settled_at timestamp(6) with time zone,
  add column listed_by uuid;

alter table utility.documents
  add column absent_since timestamp(6) with time zone,
  add column absent_by text,
  add column hint_event_id text,
  add column hint jsonb,
  add column hint_updated timestamp(6) with time zone,
  add column hint_deletes boolean,
  add column hint_came timestamp(6) with time zone,
  add column hint_settled_at timestamp(6) with time zone,
  add column listed_by uuid;

alter table utility.meters
  add column absent_since timestamp(6) with time zone,
  add column absent_by text,
  add column listed_by uuid;

alter table utility.usage_data
  add column absent_since timestamp(6) with time zone,
  add column absent_by text,
  add column document_deleted_at timestamp(6) with time zone,
  add column listed_by uuid;

alter table metersync.also_listed
  add column raw jsonb,
  add column digest bytea,
  add column api_version text,
  add column read_at timestamp(6) with time zone;

--> statement-breakpoint
create index connections_listed_by on utility.connections (listed_by)
where listed_by is not null;
create index documents_listed_by on utility.documents (listed_by)
where listed_by is not null;
create index meters_listed_by on utility.meters (listed_by)
where listed_by is not null;
create index usage_data_listed_by on utility.usage_data (listed_by)
where listed_by is not null;

--> statement-breakpoint
-- What was proved before stands in the columns.
update utility.companies
set absent_since = deleted_at, absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

update utility.sites
set absent_since = deleted_at, absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

update utility.connections
set absent_since = deleted_at, absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

update utility.documents
set absent_since = deleted_at, absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

update utility.meters
set absent_since = deleted_at, absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

update utility.usage_data
set absent_since = deleted_at, absent_by = deleted_reason
where deleted_reason in ('absent', 'listed', 'not_found');

--> statement-breakpoint
-- Usage is deleted with its document. A row whose document is live again lost its tombstone with
-- it, or is gone itself.
update utility.usage_data u
set document_deleted_at = d.deleted_at
from utility.documents d
where u.document_id = d.id
  and d.deleted_at is not null;

update utility.usage_data
set
  absent_since = deleted_at,
  absent_by = 'absent'
where deleted_reason = 'document'
  and document_deleted_at is null;

--> statement-breakpoint
-- What events announced stands in the columns.
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
-- The earlier states of all resources are in one table, and the tables of schema history become
-- views of it.
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

--> statement-breakpoint
-- Views that users built on a table are made again on the view, and keep their rights and what
-- depends on them. If something else depends on the table, it has to be dropped first.
do $do$
declare
  old record;
  columns text;
  statement text;
  built text[];
  dependents text;
begin
  for old in
    select c.oid, c.relname as name, c.relrowsecurity, resources.name as resource
    from (
      values
        ('companies', 'companies'),
        ('sites', 'sites'),
        ('connections', 'connections'),
        ('documents', 'documents'),
        ('usage_data', 'usageData'),
        ('meters', 'meters')
    ) resources (table_name, name)
      join pg_class c on c.oid = format('history.%I', table_name)::regclass
  loop
    -- The owner of the view reads the table for its users, so that policies would no longer apply.
    if old.relrowsecurity then
      raise exception 'history.% has row security, which a view cannot have: disable it, run metersync migrate, and give rights on a view of yours instead', old.name;
    end if;
    select
      array_agg(format(
        'create or replace view %s %s as %s',
        v.oid::regclass,
        'with (' || array_to_string(v.reloptions, ', ') || ')',
        pg_get_viewdef(v.oid)
      ))
    into built
    from pg_class v
    where v.relkind = 'v'
      and pg_has_role(v.relowner, 'usage')
      and exists (
        select
        from pg_rewrite r
          join pg_depend d on d.classid = 'pg_rewrite'::regclass
            and d.objid = r.oid
        where r.ev_class = v.oid
          and d.refclassid = 'pg_class'::regclass
          and d.refobjid = old.oid
      );
    execute format('alter table history.%1$I rename to %2$I', old.name, 'old_' || old.name);
    -- The id of a meter is the meter of its states.
    select string_agg(
      case
        when old.name = 'meters' and attname = 'id' then 'meter_id as id'
        else quote_ident(attname)
      end,
      ', ' order by attnum
    )
    into columns
    from pg_attribute
    where attrelid = old.oid
      and attnum > 0
      and not attisdropped;
    execute format(
      'create view history.%I as select %s from metersync.earlier_states where resource = %L',
      old.name,
      columns,
      old.resource
    );
    execute format(
      'insert into metersync.earlier_states (resource, %s) select %L, t.* from history.%I t',
      replace(columns, 'meter_id as id', 'meter_id'),
      old.resource,
      'old_' || old.name
    );
    for statement in
      select
        format(
          'grant %s%s on history.%I to %s%s',
          acl.privilege_type,
          case when g.column_name is not null then format(' (%I)', g.column_name) end,
          old.name,
          case acl.grantee when 0 then 'public' else acl.grantee::regrole::text end,
          case when acl.is_grantable then ' with grant option' end
        )
      from (
        select relacl as acl, relowner as owner, null::name as column_name
        from pg_class
        where oid = old.oid
        union all
        select attacl, null, attname
        from pg_attribute
        where attrelid = old.oid
          and attnum > 0
          and not attisdropped
      ) g
        cross join lateral aclexplode(g.acl) acl
      where acl.grantee is distinct from g.owner
        -- It gets its rights after each migration.
        and acl.grantee is distinct from to_regrole('metersync_writer')
    loop
      execute statement;
    end loop;
    foreach statement in array coalesce(built, '{}') loop
      execute statement;
    end loop;
    begin
      execute format('drop table history.%I', 'old_' || old.name);
    exception
      when dependent_objects_still_exist then
        get stacked diagnostics dependents = pg_exception_detail;
        raise exception 'history.% becomes a view, and something of yours was built on the table: drop it, run metersync migrate, and make it again. %', old.name, dependents;
    end;
  end loop;
end
$do$;

--> statement-breakpoint
drop index metersync.deletes_kept;
create index deletes_kept on metersync.deletes (company_id, resource)
where state not in ('quarantined', 'applied');

--> statement-breakpoint
create index earlier_states_record on metersync.earlier_states (resource, id, valid_to);
create index earlier_states_meter on metersync.earlier_states (meter_id, valid_to)
where resource = 'meters';
create index earlier_states_company on metersync.earlier_states (company_id)
where resource = 'documents';

--> statement-breakpoint
-- An empty table is not analysed: plans would take it for empty later on.
do $do$
begin
  if exists (select from metersync.earlier_states) then
    analyze metersync.earlier_states;
  end if;
end
$do$;

--> statement-breakpoint
-- Their triggers call metersync.keep_history from now on.
drop function metersync.keep_history_of_companies() cascade;
drop function metersync.keep_history_of_sites() cascade;
drop function metersync.keep_history_of_connections() cascade;
drop function metersync.keep_history_of_documents() cascade;
drop function metersync.keep_history_of_usage_data() cascade;
drop function metersync.keep_history_of_meters() cascade;
drop function metersync.make_history_of(text, text, text[]);
drop function metersync.make_notes_of(text, text[]);

--> statement-breakpoint
-- The journal is the queue of what has to be read again. The table stale_records, which had the
-- same events a second time, is dropped once the views that read it were replaced
-- (db/migrate/apply-views.ts).
alter table metersync.journal
  add column queue text,
  add column due_at timestamp(6) with time zone;

--> statement-breakpoint
update metersync.journal e
set
  queue = e.kind || '/' || coalesce(s.owner, e.company_id::text, e.record_id),
  due_at = coalesce(s.due_at, clock_timestamp()),
  attempts = coalesce(s.attempts, 0),
  error = s.error,
  error_code = s.error_code
from metersync.journal pending
  left join metersync.stale_records s
    on s.kind = pending.kind
    and s.record_id = case pending.kind when 'interval' then pending.id else pending.record_id end
where pending.outcome = 'pending'
  and e.id = pending.id;

--> statement-breakpoint
alter table metersync.journal
add constraint journal_pending_are_queued check (
  (outcome = 'pending') = (queue is not null) and (queue is null) = (due_at is null)
);

create index journal_pending_record on metersync.journal (record_id, kind)
where outcome = 'pending';
create index journal_pending_queue on metersync.journal (queue, due_at, id)
where queue is not null;
create index journal_pending_due on metersync.journal (kind, due_at, id)
where due_at is not null;
create index journal_pending_failed on metersync.journal (error_code, due_at, id)
where outcome = 'pending' and error_code is not null;

-- Settling an event now changes indexes, so room for other versions on its page would be of no use.
-- By default, 20 % of a large journal could be dead rows before they are removed.
alter table metersync.journal reset (fillfactor);
alter table metersync.journal set (autovacuum_vacuum_scale_factor = 0.01);

--> statement-breakpoint
-- What is not requested for now.
create table metersync.gates (
  scope text primary key not null,
  code text not null,
  message text not null,
  since timestamp(6) with time zone default clock_timestamp() not null,
  attempts integer not null,
  next_probe_at timestamp(6) with time zone not null
);

insert into metersync.gates (scope, code, message, since, attempts, next_probe_at)
select 'service', code, message, since, attempts, next_attempt_at
from metersync.parked
order by next_attempt_at desc
limit 1;

drop table metersync.parked;

--> statement-breakpoint
-- Nothing has to be woken any more. A worker of 0.2 locks this table before it records events, and
-- without it tries again until it is replaced, instead of recording events without a queue.
drop table metersync.catch_ups;

--> statement-breakpoint
-- The fences of listings, and what was read of each meter within a day.
create table metersync.listings (
  company_id uuid not null,
  resource text not null,
  proved_began timestamp(6) with time zone not null,
  constraint listings_company_id_resource_pk primary key (company_id, resource)
);

create table metersync.interval_reads (
  meter_id text not null,
  span tstzrange not null,
  began timestamp(6) with time zone not null,
  constraint interval_reads_meter_id_span_pk primary key (meter_id, span)
);

alter table metersync.interval_fetches drop column removed_at;

--> statement-breakpoint
-- The companies of a run are shared out in Postgres.
create table metersync.run_lanes (
  run_id uuid not null,
  company_id uuid not null,
  lane integer not null,
  constraint run_lanes_run_id_company_id_pk primary key (run_id, company_id)
);

alter table metersync.runs
add column claimed_to uuid not null default '00000000-0000-0000-0000-000000000000';

--> statement-breakpoint
-- The catalogue of fields has what a view of a field needs. Views read the old table, and views of
-- users may read ops.contract_changes: both are dropped once the views were replaced.
drop trigger note_contract_changes on metersync.field_catalogue;
drop trigger note_contract_changes_of_new on metersync.field_catalogue;
drop function metersync.note_contract_changes();
drop function metersync.enum_union(text[], text[]);

alter table metersync.field_catalogue rename to old_field_catalogue;
alter table metersync.old_field_catalogue
rename constraint field_catalogue_resource_api_version_path_pk to old_field_catalogue_pk;

create table metersync.field_catalogue (
  resource text not null,
  api_version text not null,
  path text not null,
  types text[] not null,
  first_seen_at timestamp(6) with time zone default clock_timestamp() not null,
  constraint field_catalogue_resource_api_version_path_pk primary key (
    resource,
    api_version,
    path
  )
);

insert into metersync.field_catalogue (resource, api_version, path, types, first_seen_at)
select
  resource,
  api_version,
  path,
  case when collapsed and path <> '' then types || '{map}' else types end,
  first_seen_at
from metersync.old_field_catalogue;

--> statement-breakpoint
-- The comments of the baseline follow. Columns without one lose the comment of 0.2.
do $$
declare
  commented record;
begin
  for commented in
    select c.oid::regclass as relation, a.attname
    from pg_class c
      join pg_attribute a on a.attrelid = c.oid
    where c.relkind in ('r', 'p')
      and c.relnamespace::regnamespace::text in ('utility', 'ops', 'metersync')
      and pg_has_role(c.relowner, 'usage')
      and a.attnum > 0
      and col_description(c.oid, a.attnum) is not null
  loop
    execute format(
      'comment on column %s.%I is null',
      commented.relation,
      commented.attname
    );
  end loop;
end
$$;
