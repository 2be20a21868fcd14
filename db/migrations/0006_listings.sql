-- floor: 2
-- Code that does not know the table drops no late pages, as before.
create table "metersync"."listings" (
  "company_id" uuid not null,
  "resource" text not null,
  "proved_began" timestamp(6) with time zone not null,
  constraint "listings_company_id_resource_pk" primary key ("company_id", "resource")
);

--> statement-breakpoint
comment on table metersync.listings is
  'The fence of each listing. Pages and absences of a walk that began before it are dropped.';

--> statement-breakpoint
comment on column metersync.listings.company_id is
  'The company that lists the records, or zeros for the list of companies.';

--> statement-breakpoint
comment on column metersync.listings.resource is 'Kind of the records.';

--> statement-breakpoint
comment on column metersync.listings.proved_began is
  'When the newest walk over the listing began that was proved complete.';
