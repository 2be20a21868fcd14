-- When the months of a company were worked out is noted with its changes. The table that had it stays until
-- the views no longer read it: db/migrate/gone.ts drops it then.
alter table "metersync"."company_changes"
add column "is_kept" boolean default false not null;

--> statement-breakpoint
insert into
  metersync.company_changes (company_id, changed_at, is_kept)
select
  company_id,
  kept_at,
  true
from
  metersync.months_kept;

--> statement-breakpoint
-- Both statements wait for writers of records. The table only has the latest changes.
-- squawk-ignore require-concurrent-index-deletion
drop index "metersync"."company_changes_at";

--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
create index "company_changes_waiting" on "metersync"."company_changes" using btree("changed_at")
where not is_kept;

--> statement-breakpoint
comment on table metersync.company_changes is
  'Companies whose records changed since their months were worked out, and when the months of each company were.';
comment on column metersync.company_changes.changed_at is 'When it was written, or the months were worked out.';
comment on column metersync.company_changes.is_kept is 'Whether the months were worked out then.';
