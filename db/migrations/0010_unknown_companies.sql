-- Which companies the service did not know when it was last asked. Until now each stale record
-- remembered it alone, so that many events of one invented company caused many requests.
create table "metersync"."unknown_companies" (
  "company_id" uuid primary key not null,
  "checks" integer not null,
  "checked_at" timestamp(6) with time zone not null,
  "next_check_at" timestamp(6) with time zone not null
);

--> statement-breakpoint
comment on table metersync.unknown_companies is
  'Companies that events name and the service does not know.';

--> statement-breakpoint
comment on column metersync.unknown_companies.company_id is 'Company that events name.';

--> statement-breakpoint
comment on column metersync.unknown_companies.checks is 'How often the service was asked about it.';

--> statement-breakpoint
comment on column metersync.unknown_companies.checked_at is 'When it was last asked.';

--> statement-breakpoint
comment on column metersync.unknown_companies.next_check_at is
  'Until then the answer counts, and it is not asked again.';
