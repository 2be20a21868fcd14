-- A look sends what opened or closed to NOTIFY_URL, and notes it on the alarm. Looks of older workers
-- write into the table that goes, so this migration names no floor: they have to be stopped first.
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
