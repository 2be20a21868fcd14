ALTER TABLE "utility"."connections" ADD COLUMN "digest" "bytea";--> statement-breakpoint
ALTER TABLE "utility"."meters" ADD COLUMN "digest" "bytea";--> statement-breakpoint
COMMENT ON COLUMN utility.connections.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
COMMENT ON COLUMN utility.meters.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
