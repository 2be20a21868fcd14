ALTER TABLE "ops"."data_issues" ADD COLUMN "closed_reason" text;--> statement-breakpoint
ALTER TABLE "ops"."data_issues" ADD COLUMN "acknowledged_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "ops"."data_issues" ADD COLUMN "acknowledged_note" text;--> statement-breakpoint
ALTER TABLE "ops"."data_issues" ADD CONSTRAINT "data_issues_closed_reason" CHECK (closed_reason is null or closed_at is not null and closed_reason in ('evidence_gone', 'check_off', 'check_removed'));--> statement-breakpoint
ALTER TABLE "ops"."data_issues" ADD CONSTRAINT "data_issues_acknowledged_note" CHECK (acknowledged_note is null or acknowledged_at is not null);--> statement-breakpoint
-- It takes one argument more, and would stand beside itself.
DROP FUNCTION IF EXISTS ops.refresh_data_issues(uuid[], text[], date);
--> statement-breakpoint
COMMENT ON COLUMN ops.data_issues.closed_at IS 'When a check no longer found it, or its check was left out; NULL while it is open.';
COMMENT ON COLUMN ops.data_issues.closed_reason IS 'evidence_gone: what showed it is no longer there; check_off: its check is in CHECKS_OFF; check_removed: there is no such check any more. NULL while it is open, and where it was closed before this was noted.';
COMMENT ON COLUMN ops.data_issues.acknowledged_at IS 'When somebody said to know of it, by metersync checks acknowledge; it stays open.';
COMMENT ON COLUMN ops.data_issues.acknowledged_note IS 'What they said to it.';
