ALTER TABLE "metersync"."service_gate" DROP COLUMN "concurrency";--> statement-breakpoint
COMMENT ON TABLE metersync.service_gate IS 'The gate of the service: until when all workers wait.';
