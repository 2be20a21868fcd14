-- floor: 1
-- From here on triggers run statements with a fixed text, so that a session plans each once. Before,
-- each write of records had them made and planned anew: a quarter of the time of a group of events.
-- A later migration that adds a column calls the two functions again that make those of a table.
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
    set enable_nestloop = off
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
