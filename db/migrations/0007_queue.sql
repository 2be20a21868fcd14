-- The pending events of the journal are the queue of what has to be read again; the table stale_records,
-- which had the same events a second time, is dropped with the views (db/migrate/apply-views.ts). Code of 0.2 writes that table and has to be stopped
-- first. Therefore this migration names no floor, and may lock the journal while it creates indexes.
-- squawk-ignore-file require-concurrent-index-creation, constraint-missing-not-valid, ban-drop-table
-- rewrites: metersync.journal, 100000 rows a second
alter table "metersync"."journal" add column "queue" text;

--> statement-breakpoint
alter table "metersync"."journal" add column "due_at" timestamp(6) with time zone;

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
alter table "metersync"."journal"
add constraint "journal_pending_are_queued"
check ((outcome = 'pending') = (queue is not null) and (queue is null) = (due_at is null));

--> statement-breakpoint
create index "journal_pending_record" on "metersync"."journal" using btree("record_id", "kind")
where outcome = 'pending';

--> statement-breakpoint
create index "journal_pending_queue" on "metersync"."journal" using btree("queue", "due_at", "id")
where queue is not null;

--> statement-breakpoint
create index "journal_pending_due" on "metersync"."journal" using btree("kind", "due_at", "id")
where due_at is not null;

--> statement-breakpoint
create index "journal_pending_failed" on "metersync"."journal" using btree("error_code", "due_at", "id")
where outcome = 'pending' and error_code is not null;

--> statement-breakpoint
-- Settling an event now changes indexes, so room for other versions on its page would be of no use. By
-- default, 20 % of a large journal could be dead rows before they are removed.
alter table metersync.journal reset (fillfactor);

--> statement-breakpoint
alter table metersync.journal set (autovacuum_vacuum_scale_factor = 0.01);

--> statement-breakpoint
comment on column metersync.journal.queue is
  'The kind, and the owner of the listing that has the record: a company, or the meter of a range of readings.';

--> statement-breakpoint
comment on column metersync.journal.due_at is 'The record of a pending event is not read again before this time.';

--> statement-breakpoint
comment on column metersync.journal.attempts is
  'Unsuccessful attempts to read its record, for the reason in error_code.';

--> statement-breakpoint
-- Nothing has to be woken any more. Code of 0.2 locks this table before it records events, and without it
-- tries again until it is replaced, instead of recording events without a queue.
drop table "metersync"."catch_ups";
