-- floor: 1
-- Rows that somebody decided to keep are left alone by runs, until a listing shows them again. Each
-- listing asks for them. There are few, so the index is built in no time.
-- squawk-ignore require-concurrent-index-creation
create index "deletes_kept" on "metersync"."deletes" using btree("company_id", "resource")
where state in ('rejected', 'undone');

--> statement-breakpoint
-- A finding that somebody acknowledged does not count, unless it counts more than it did then.
alter table "metersync"."alerts"
add column "acknowledged_at" timestamp(6) with time zone,
add column "acknowledged_by" text,
add column "acknowledged_note" text,
add column "acknowledged_counts" jsonb;

--> statement-breakpoint
comment on column metersync.alerts.acknowledged_at is 'When somebody acknowledged it; NULL if nobody did.';
comment on column metersync.alerts.acknowledged_by is 'Who acknowledged it.';
comment on column metersync.alerts.acknowledged_note is 'Why.';
comment on column metersync.alerts.acknowledged_counts is 'What it counted then: more is news.';

--> statement-breakpoint
-- Receivers report through Temporal what they refused. Before the first look the row has no time,
-- which older code writes with its first look.
alter table "metersync"."heartbeat"
-- squawk-ignore ban-drop-not-null
alter column "at" drop not null,
add column "refused" jsonb,
add column "refused_since" timestamp(6) with time zone,
add column "refused_until" timestamp(6) with time zone;

--> statement-breakpoint
comment on column metersync.heartbeat.refused is 'Signed deliveries that receivers refused, by reason.';
comment on column metersync.heartbeat.refused_since is 'When the first of them was reported.';
comment on column metersync.heartbeat.refused_until is 'When the last of them was reported.';
