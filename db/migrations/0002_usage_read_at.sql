ALTER TABLE "utility"."documents" ADD COLUMN "usage_read_at" timestamp(6) with time zone;
--> statement-breakpoint
COMMENT ON COLUMN utility.documents.usage_read_at IS 'When the last read of all its usage began: a usage row that was read before and is not known by then is gone.';
