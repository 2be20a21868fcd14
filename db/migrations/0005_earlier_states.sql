-- The earlier states of all resources are in one table, and the tables of schema history become views of it.
-- The rows of the tables are copied in the transaction of the migration, which locks the tables meanwhile.
-- rewrites: history.companies
-- rewrites: history.connections
-- rewrites: history.documents, 5000 rows a second
-- rewrites: history.meters
-- rewrites: history.sites
-- rewrites: history.usage_data
-- squawk-ignore-file require-concurrent-index-creation
create table "metersync"."earlier_states" (
  "resource" text not null,
  "id" uuid,
  "company_id" uuid,
  "site_id" uuid,
  "document_id" uuid,
  "revised_document_id" uuid,
  "meter_id" text,
  "external_id" text,
  "public_id" text,
  "name" text,
  "datasource" text,
  "status" text,
  "url" text,
  "account_id" text,
  "datasource_type" text,
  "start_date" date,
  "end_date" date,
  "usage" numeric,
  "usage_units" text,
  "is_estimated" boolean,
  "exclusion" boolean,
  "net_metering_type" text,
  "billed_demand" numeric,
  "created" timestamp(6) with time zone,
  "updated" timestamp(6) with time zone,
  "raw_updated" timestamp(6) with time zone,
  "usage_read_at" timestamp(6) with time zone,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "valid_from" timestamp(6) with time zone not null,
  "valid_to" timestamp(6) with time zone not null,
  "ended_by_kind" text,
  "ended_by" text,
  constraint "earlier_states_have_an_id" check ((id is null) = (resource = 'meters'))
);

--> statement-breakpoint
-- Views that users built on a table are made again on the view, and keep their rights and what depends on
-- them. If something else depends on the table, it has to be dropped first.
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
create index "earlier_states_record" on "metersync"."earlier_states" using btree(
  "resource", "id", "valid_to"
);

--> statement-breakpoint
create index "earlier_states_meter" on "metersync"."earlier_states" using btree("meter_id", "valid_to")
where resource = 'meters';

--> statement-breakpoint
create index "earlier_states_company" on "metersync"."earlier_states" using btree("company_id")
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
comment on table metersync.earlier_states is
  'Earlier states of all records. The views of schema history have those of one resource each.';
comment on column metersync.earlier_states.resource is
  'companies, sites, connections, documents, usageData or meters. Columns that its table in utility lacks are NULL.';
comment on column metersync.earlier_states.valid_from is 'When the warehouse began to say this.';
comment on column metersync.earlier_states.valid_to is 'When it stopped to, not included.';
comment on column metersync.earlier_states.ended_by_kind is
  'event or run; NULL where neither is known.';
comment on column metersync.earlier_states.ended_by is 'Id of the event or run.';

--> statement-breakpoint
-- Keeps the state that a change ends, in the transaction of the change. It ends for an event that waits for the
-- record or that came in this transaction, else for the run that is reading the company. The argument is the
-- resource. The columns are named one by one, so that a column which a table gets later is kept only on purpose.
--
-- The statement has the same text for all tables, and a session plans it once for each. Plans for the parameters
-- would be made anew at each write, which tripled the cost of a document that an event changed. However many rows
-- there are, old and new ones are joined by a hash: a kept plan cannot know.
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
    start_date, end_date, usage, usage_units, is_estimated, exclusion, net_metering_type, billed_demand,
    created, updated, raw_updated, usage_read_at,
    raw, api_version, first_synced_at, synced_at, deleted_at, deleted_reason,
    valid_from, valid_to, ended_by_kind, ended_by
  )
  with
    -- The columns that not every table has. A name that old_rows or new_rows lacks means such a NULL.
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
          o.external_id, o.public_id, o.name, o.datasource, o.status, o.url, o.account_id, o.datasource_type,
          o.start_date, o.end_date, o.usage, o.usage_units,
          o.raw, o.api_version, o.deleted_at
        ) is distinct from (
          n.company_id, n.site_id, n.document_id, n.meter_id,
          n.external_id, n.public_id, n.name, n.datasource, n.status, n.url, n.account_id, n.datasource_type,
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
          where r.company_id = case when of_resource = 'companies' then ended.record else ended.company_id end
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
    of_resource, record, company_id, site_id, document_id, revised_document_id, coalesce(meter, meter_id),
    external_id, public_id, name, datasource, status, url, account_id, datasource_type,
    start_date, end_date, usage, usage_units, is_estimated, exclusion, net_metering_type, billed_demand,
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
create or replace trigger keep_history
after update on utility.companies referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('companies');

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.sites referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('sites');

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.connections referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('connections');

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.documents referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('documents');

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.usage_data referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('usageData');

--> statement-breakpoint
create or replace trigger keep_history
after update on utility.meters referencing old table as old_rows new table as new_rows for each statement
execute function metersync.keep_history('meters');

--> statement-breakpoint
drop function metersync.make_history_of(text, text, text[]);

--> statement-breakpoint
drop function metersync.keep_history_of_companies();

--> statement-breakpoint
drop function metersync.keep_history_of_sites();

--> statement-breakpoint
drop function metersync.keep_history_of_connections();

--> statement-breakpoint
drop function metersync.keep_history_of_documents();

--> statement-breakpoint
drop function metersync.keep_history_of_usage_data();

--> statement-breakpoint
drop function metersync.keep_history_of_meters();
