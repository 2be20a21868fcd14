-- The companies of a run are shared out in Postgres. Code of 0.2 shared them out in workflows, and has to be
-- stopped first: see 0007.
create table "metersync"."run_lanes" (
  "run_id" uuid not null,
  "lane" integer not null,
  "company_id" uuid not null,
  constraint "run_lanes_run_id_lane_pk" primary key ("run_id", "lane")
);

--> statement-breakpoint
comment on table metersync.run_lanes is
  'The company that each lane of a run under way reads. Several lanes share the companies of a run.';

--> statement-breakpoint
comment on column metersync.run_lanes.run_id is 'Run id.';

--> statement-breakpoint
comment on column metersync.run_lanes.lane is 'Number of the lane, from 0.';

--> statement-breakpoint
comment on column metersync.run_lanes.company_id is 'The company.';

--> statement-breakpoint
alter table "metersync"."runs"
add column "claimed_to" uuid not null default '00000000-0000-0000-0000-000000000000';

--> statement-breakpoint
comment on column metersync.runs.claimed_to is
  'The last company that a lane of the run has begun, in the order of the ids; zeros if none has, and for parts.';
