ALTER TABLE "utility"."documents" ADD COLUMN "digest" "bytea";--> statement-breakpoint
ALTER TABLE "utility"."usage_data" ADD COLUMN "digest" "bytea";--> statement-breakpoint
COMMENT ON COLUMN utility.documents.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
COMMENT ON COLUMN utility.usage_data.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
