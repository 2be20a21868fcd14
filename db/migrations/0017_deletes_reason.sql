ALTER TABLE "metersync"."deletes" ADD COLUMN "reason" text DEFAULT 'absent' NOT NULL;--> statement-breakpoint
ALTER TABLE "metersync"."deletes" ADD COLUMN "updated" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "metersync"."deletes" ADD CONSTRAINT "deletes_reason" CHECK (reason in ('absent', 'listed'));--> statement-breakpoint
COMMENT ON TABLE metersync.deletes IS 'Rows that a run found gone from the service: tombstoned, or kept until somebody decides.';
COMMENT ON COLUMN metersync.deletes.reason IS 'absent: no pass of a backfill, or look of an audit, showed it; listed: a reconcile saw it among deleted documents.';
COMMENT ON COLUMN metersync.deletes.updated IS 'The updated of the record where the service lists it as deleted.';
COMMENT ON COLUMN metersync.deletes.absent_since IS 'When the first of the reads began that did not see it, or saw it among deleted ones.';
