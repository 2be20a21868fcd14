-- What was read of each meter within a day. Code of 0.2 writes removed_at, and has to be stopped first: see 0007.
-- squawk-ignore-file ban-drop-column
create table "metersync"."interval_reads" (
  "meter_id" text not null,
  "span" tstzrange not null,
  "began" timestamp(6) with time zone not null,
  constraint "interval_reads_meter_id_span_pk" primary key ("meter_id", "span")
);

--> statement-breakpoint
comment on table metersync.interval_reads is
  'Ranges of readings that were read within a day: an earlier read that is written later does not bring back what a later one did not show.';

--> statement-breakpoint
comment on column metersync.interval_reads.meter_id is 'The meter.';

--> statement-breakpoint
comment on column metersync.interval_reads.span is 'The range, without its end.';

--> statement-breakpoint
comment on column metersync.interval_reads.began is 'When the last read of this range began.';

--> statement-breakpoint
alter table "metersync"."interval_fetches"
drop column "removed_at";
