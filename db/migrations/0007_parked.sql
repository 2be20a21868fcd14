CREATE TABLE "metersync"."parked" (
	"code" text PRIMARY KEY NOT NULL,
	"message" text NOT NULL,
	"since" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"attempts" integer NOT NULL,
	"next_attempt_at" timestamp(6) with time zone NOT NULL
);


--> statement-breakpoint
COMMENT ON TABLE metersync.parked IS 'Why nothing at all is asked of the service, for example as it refuses the API key; empty while all is well.';
COMMENT ON COLUMN metersync.parked.code IS 'Code of the failure, as docs/failures.md lists them.';
COMMENT ON COLUMN metersync.parked.message IS 'The failure in words.';
COMMENT ON COLUMN metersync.parked.since IS 'When it was first met.';
COMMENT ON COLUMN metersync.parked.attempts IS 'How often it was met since, or since the last metersync resume.';
COMMENT ON COLUMN metersync.parked.next_attempt_at IS 'Nothing is asked before this time.';
