-- Each event's outcome is stored with it. Until now it was worked out from the journal and a log of
-- settlements, by ranges of time. The journal's table keeps the payloads, which are not written again,
-- and gets another name; a narrow table takes its name and all other columns. Building that takes about
-- 40 seconds for a million events.
-- rewrites: metersync.journal
-- Code of former versions does not run beside it, and the tables are locked while it runs:
-- squawk-ignore-file renaming-table, ban-drop-column, ban-drop-table, require-concurrent-index-deletion, constraint-missing-not-valid, adding-serial-primary-key-field
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
