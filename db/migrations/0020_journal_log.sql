-- The journal becomes a log: what waits stands in stale_records, and how it was settled in settlements. Views of ours that
-- show the old columns are made anew by db/views; until then they are empty, so that what was built on them stays.
DO $$
declare
  shown record;
begin
  for shown in
    select c.oid::regclass as relation, (
        select string_agg(format('null::%s as %I', format_type(a.atttypid, a.atttypmod), a.attname), ', ' order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      ) as columns
    from pg_class c
    where c.relkind = 'v' and c.relnamespace in (select oid from pg_namespace where nspname in ('ops', 'analytics', 'metersync'))
      and exists (
        select from pg_rewrite r join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
        where r.ev_class = c.oid and d.refobjid = 'metersync.events'::regclass)
  loop
    execute format('create or replace view %s as select %s where false', shown.relation, shown.columns);
  end loop;
end
$$;
--> statement-breakpoint
CREATE TABLE "metersync"."settlements" (
	"kind" text NOT NULL,
	"record_id" text NOT NULL,
	"owner" text NOT NULL,
	"since" timestamp(6) with time zone NOT NULL,
	"read_at" timestamp(6) with time zone NOT NULL,
	"shown" timestamp(6) with time zone NOT NULL,
	"settled_at" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"outcome" text NOT NULL,
	"updates_only" boolean DEFAULT false NOT NULL,
	"error" text,
	"error_code" text,
	"attempts" integer DEFAULT 0 NOT NULL,
	"intervals_told" bigint,
	"intervals_found" bigint,
	CONSTRAINT "settlements_outcome" CHECK (outcome in ('applied', 'superseded', 'dead', 'missing'))
);
--> statement-breakpoint
CREATE TABLE "metersync"."stale_records" (
	"key" text PRIMARY KEY GENERATED ALWAYS AS (kind || '/' || record_id) STORED NOT NULL,
	"queue" text GENERATED ALWAYS AS (kind || '/' || owner) STORED NOT NULL,
	"kind" text NOT NULL,
	"record_id" text NOT NULL,
	"owner" text NOT NULL,
	"events" integer NOT NULL,
	"since" timestamp(6) with time zone NOT NULL,
	"told_at" timestamp(6) with time zone NOT NULL,
	"wanted" timestamp(6) with time zone,
	"due_at" timestamp(6) with time zone NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"tried_since" timestamp(6) with time zone,
	"error" text,
	"error_code" text
);
--> statement-breakpoint
INSERT INTO metersync.stale_records
  (kind, record_id, owner, events, since, told_at, wanted, due_at, attempts, tried_since, error, error_code)
select kind, case kind when 'interval' then id else record_id end,
  coalesce((array_agg(company_id order by occurred_at desc))[1]::text, min(record_id)), count(*), min(recorded_at),
  max(recorded_at), max(occurred_at), min(coalesce(next_attempt_at, recorded_at)), max(attempts),
  case when max(attempts) > 0 then max(recorded_at) end, max(error), max(error_code)
from metersync.events
where outcome = 'pending'
group by 1, 2;
--> statement-breakpoint
INSERT INTO metersync.settlements
  (kind, record_id, owner, since, read_at, shown, settled_at, outcome, error, error_code, attempts, intervals_told, intervals_found)
select kind, case kind when 'interval' then id else record_id end, coalesce(company_id::text, record_id), recorded_at, recorded_at,
  coalesce(occurred_at, 'infinity'), coalesce(applied_at, recorded_at), outcome, error, error_code, attempts,
  interval_count, intervals_found
from metersync.events
where outcome = 'missing' or outcome = 'applied' and kind = 'interval';
--> statement-breakpoint
DROP INDEX "metersync"."events_pending";--> statement-breakpoint
DROP INDEX "metersync"."events_short";--> statement-breakpoint
DROP INDEX "metersync"."events_unhappy";--> statement-breakpoint
DROP INDEX "metersync"."events_parked";--> statement-breakpoint
DROP INDEX "metersync"."events_with_payload";--> statement-breakpoint
ALTER TABLE "metersync"."events" DROP CONSTRAINT "events_outcome";--> statement-breakpoint
UPDATE metersync.events SET outcome = 'pending' WHERE outcome = 'missing' or outcome = 'applied' and kind = 'interval';
--> statement-breakpoint
ALTER TABLE "metersync"."events" RENAME TO "journal";--> statement-breakpoint
ALTER TABLE "metersync"."journal" RENAME COLUMN "outcome" TO "arrived_as";--> statement-breakpoint
ALTER TABLE "metersync"."journal" DROP COLUMN "applied_at";--> statement-breakpoint
ALTER TABLE "metersync"."journal" DROP COLUMN "attempts";--> statement-breakpoint
ALTER TABLE "metersync"."journal" DROP COLUMN "next_attempt_at";--> statement-breakpoint
ALTER TABLE "metersync"."journal" DROP COLUMN "intervals_found";--> statement-breakpoint
ALTER TABLE "metersync"."journal" RENAME CONSTRAINT "events_pkey" TO "journal_pkey";--> statement-breakpoint
ALTER TABLE "metersync"."journal" RENAME CONSTRAINT "events_ranges_have_a_length" TO "journal_ranges_have_a_length";--> statement-breakpoint
ALTER TABLE "metersync"."journal" RENAME CONSTRAINT "events_dead_say_why" TO "journal_dead_say_why";--> statement-breakpoint
ALTER TABLE "metersync"."journal" RENAME CONSTRAINT "events_keep_their_bytes" TO "journal_keeps_bytes";--> statement-breakpoint
ALTER TABLE "metersync"."journal" ADD CONSTRAINT "journal_arrived_as" CHECK (arrived_as in ('pending', 'applied', 'superseded', 'ignored', 'dead'));--> statement-breakpoint
ALTER INDEX "metersync"."events_record" RENAME TO "journal_record";--> statement-breakpoint
ALTER INDEX "metersync"."events_received" RENAME TO "journal_received";--> statement-breakpoint
CREATE INDEX "journal_unhappy" ON "metersync"."journal" USING btree ("arrived_as","recorded_at") WHERE arrived_as in ('dead', 'ignored');--> statement-breakpoint
CREATE INDEX "journal_with_payload" ON "metersync"."journal" USING btree ("received_at") WHERE payload_dropped_at is null;--> statement-breakpoint
CREATE INDEX "settlements_record" ON "metersync"."settlements" USING btree ("kind","record_id","read_at");--> statement-breakpoint
CREATE INDEX "settlements_settled" ON "metersync"."settlements" USING btree ("settled_at");--> statement-breakpoint
CREATE INDEX "settlements_unhappy" ON "metersync"."settlements" USING btree ("outcome","error_code") WHERE outcome <> 'applied';--> statement-breakpoint
CREATE INDEX "settlements_short" ON "metersync"."settlements" USING btree ("owner") WHERE intervals_found < intervals_told;--> statement-breakpoint
CREATE INDEX "stale_records_queue" ON "metersync"."stale_records" USING btree ("queue","due_at");--> statement-breakpoint
CREATE INDEX "stale_records_due" ON "metersync"."stale_records" USING btree ("kind","due_at");--> statement-breakpoint
CREATE INDEX "stale_records_failed" ON "metersync"."stale_records" USING btree ("error_code") WHERE error_code is not null;
--> statement-breakpoint
-- Keeps the state that a change ends, in the transaction of the change. It ends for an event that waits for the record
-- or that came in this transaction, else for the run that is reading the company. A statement that changes no record
-- costs a look at an empty table. Arguments: the column that names the record in the journal, '' for none; the columns
-- whose change makes another state, separated by commas.
CREATE OR REPLACE FUNCTION metersync.keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
declare
  kept text;
  event text := 'null::text';
  company text := case when TG_TABLE_NAME = 'companies' then 'o.id' else 'o.company_id' end;
  at timestamptz;
begin
  if not exists (select from old_rows) then
    return null;
  end if;
  at := clock_timestamp();
  select string_agg(quote_ident(attname), ', ') into kept from pg_attribute
  where attrelid = format('history.%I', TG_TABLE_NAME)::regclass and attnum > 0 and not attisdropped
    and attgenerated = '' and attname not in ('valid_from', 'valid_to', 'ended_by_kind', 'ended_by');
  if TG_ARGV[0] <> '' then
    event := format($sql$(
      select e.id from metersync.journal e
      where e.record_id = o.%1$I::text and e.recorded_at >= least(now(), (
        select min(s.since) from metersync.stale_records s
        where s.key in ('connection/' || o.%1$I, 'document/' || o.%1$I)))
      order by e.recorded_at desc limit 1)$sql$, TG_ARGV[0]);
  end if;
  execute format($sql$
    with ended as (
      select o.*, %3$s as event, (
          select r.run_id::text from metersync.runs r where r.company_id = %4$s and r.state = 'running'
          order by r.started_at desc limit 1) as run
      from old_rows o join new_rows n using (id)
      where (%5$s) is distinct from (%6$s)
    )
    insert into history.%1$I (%2$s, valid_from, valid_to, ended_by_kind, ended_by)
    select %2$s, began, greatest($1, began), case when event is not null then 'event' when run is not null then 'run' end,
      coalesce(event, run)
    from (
      select *, coalesce((select max(h.valid_to) from history.%1$I h where h.id = ended.id), first_synced_at) as began
      from ended
    ) state$sql$,
    TG_TABLE_NAME, kept, event, company, 'o.' || replace(TG_ARGV[1], ',', ', o.'), 'n.' || replace(TG_ARGV[1], ',', ', n.'))
  using at;
  return null;
end
$$;
--> statement-breakpoint
COMMENT ON TABLE metersync.journal IS 'The log of events: every verified event once, by its id, as it came. What became of it is told by the view metersync.events.';
COMMENT ON COLUMN metersync.journal.error IS 'Why it was dead when it came.';
COMMENT ON COLUMN metersync.journal.arrived_as IS 'What it was when it came: pending (its record had to be read), applied (nothing was left to read), ignored (unknown type), dead (it cannot be applied, see error), superseded (as an earlier version noted it).';
COMMENT ON TABLE metersync.stale_records IS 'What has to be read again: a row for each record, and each range of readings, that events wait for.';
COMMENT ON COLUMN metersync.stale_records.key IS 'kind and record_id: one record.';
COMMENT ON COLUMN metersync.stale_records.queue IS 'kind and owner: what one catch-up reads.';
COMMENT ON COLUMN metersync.stale_records.kind IS 'connection, document or interval.';
COMMENT ON COLUMN metersync.stale_records.record_id IS 'Connection or document; of an interval the id of its event.';
COMMENT ON COLUMN metersync.stale_records.owner IS 'Company whose listings show the record; of an interval the meter.';
COMMENT ON COLUMN metersync.stale_records.events IS 'Events that wait for it.';
COMMENT ON COLUMN metersync.stale_records.since IS 'When the first of them was recorded.';
COMMENT ON COLUMN metersync.stale_records.told_at IS 'When the last of them was recorded: a read that began later settles them all.';
COMMENT ON COLUMN metersync.stale_records.wanted IS 'The newest state that they tell of.';
COMMENT ON COLUMN metersync.stale_records.due_at IS 'Not read again before this time.';
COMMENT ON COLUMN metersync.stale_records.attempts IS 'How often it was looked at in vain for the reason in error_code.';
COMMENT ON COLUMN metersync.stale_records.tried_since IS 'When the first of these attempts began: what was recorded later was not looked for as often.';
COMMENT ON COLUMN metersync.stale_records.error IS 'Why it still waits.';
COMMENT ON COLUMN metersync.stale_records.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON TABLE metersync.settlements IS 'How events were settled: a row for each time that a record was read for them, or that they were given up.';
COMMENT ON COLUMN metersync.settlements.kind IS 'connection, document or interval.';
COMMENT ON COLUMN metersync.settlements.record_id IS 'As in stale_records.';
COMMENT ON COLUMN metersync.settlements.owner IS 'As in stale_records.';
COMMENT ON COLUMN metersync.settlements.since IS 'When the first of the events that waited was recorded.';
COMMENT ON COLUMN metersync.settlements.read_at IS 'When the read began: it settles events that were recorded from since until then.';
COMMENT ON COLUMN metersync.settlements.shown IS 'The state that the read showed: it settles events that told of no newer one.';
COMMENT ON COLUMN metersync.settlements.settled_at IS 'When that was known.';
COMMENT ON COLUMN metersync.settlements.outcome IS 'applied: their state, or a newer one, is in the warehouse; superseded: a newer state was already known, or the record is gone; missing: the service never showed it; dead: Postgres cannot hold it.';
COMMENT ON COLUMN metersync.settlements.updates_only IS 'Whether a deletion that waits for its company is not settled by it.';
COMMENT ON COLUMN metersync.settlements.error IS 'Why they are dead or missing.';
COMMENT ON COLUMN metersync.settlements.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON COLUMN metersync.settlements.attempts IS 'How often the record was looked at in vain before.';
COMMENT ON COLUMN metersync.settlements.intervals_told IS 'Readings that the event said its range has.';
COMMENT ON COLUMN metersync.settlements.intervals_found IS 'Readings that the warehouse had in the range when it was last fetched.';
