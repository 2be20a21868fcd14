CREATE TABLE "metersync"."deletes" (
	"run_id" uuid NOT NULL,
	"company_id" uuid,
	"resource" text NOT NULL,
	"record_id" text NOT NULL,
	"state" text NOT NULL,
	"absent_since" timestamp(6) with time zone NOT NULL,
	"noted_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"decided_at" timestamp(6) with time zone,
	CONSTRAINT "deletes_run_id_resource_record_id_pk" PRIMARY KEY("run_id","resource","record_id"),
	CONSTRAINT "deletes_state" CHECK (state in ('quarantined', 'applied', 'rejected', 'undone'))
);
--> statement-breakpoint
CREATE TABLE "metersync"."interval_fetches" (
	"meter_id" text PRIMARY KEY NOT NULL,
	"fetched" "tstzmultirange" NOT NULL,
	"updated_at" timestamp(6) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "metersync"."service_gate" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"closed_until" timestamp(6) with time zone,
	"concurrency" integer,
	"updated_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "service_gate_has_one_row" CHECK (one)
);
--> statement-breakpoint
CREATE TABLE "metersync"."service_workers" (
	"worker_id" uuid PRIMARY KEY NOT NULL,
	"seen_at" timestamp(6) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "metersync"."events" DROP CONSTRAINT "events_outcome";--> statement-breakpoint
ALTER TABLE "metersync"."events" DROP CONSTRAINT "events_keep_their_bytes";--> statement-breakpoint
DROP INDEX "metersync"."events_unhappy";--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD COLUMN "error_code" text;--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD COLUMN "interval_count" bigint;--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD COLUMN "intervals_found" bigint;--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD COLUMN "workflow_id" text;--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD COLUMN "workflow_run_id" text;--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD COLUMN "payload_dropped_at" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "metersync"."runs" ADD COLUMN "kind" text DEFAULT 'full' NOT NULL;--> statement-breakpoint
ALTER TABLE "metersync"."runs" ADD COLUMN "rows_missed" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "metersync"."runs" ADD COLUMN "drift" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "metersync"."runs" ADD COLUMN "requests" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "metersync"."runs" ADD COLUMN "error_code" text;--> statement-breakpoint
CREATE INDEX "deletes_undecided" ON "metersync"."deletes" USING btree ("company_id","resource") WHERE state = 'quarantined';--> statement-breakpoint
CREATE INDEX "events_unhappy" ON "metersync"."events" USING btree ("outcome","recorded_at") WHERE outcome in ('dead', 'ignored', 'missing');--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD CONSTRAINT "events_outcome" CHECK (outcome in ('pending', 'applied', 'superseded', 'ignored', 'dead', 'missing'));--> statement-breakpoint
ALTER TABLE "metersync"."events" ADD CONSTRAINT "events_keep_their_bytes" CHECK (payload is not null or body is not null or payload_dropped_at is not null);--> statement-breakpoint
ALTER TABLE "metersync"."runs" ADD CONSTRAINT "runs_kind" CHECK (kind in ('full', 'reconcile'));
--> statement-breakpoint
COMMENT ON COLUMN metersync.events.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON COLUMN metersync.events.interval_count IS 'Readings that the event said its range has.';
COMMENT ON COLUMN metersync.events.intervals_found IS 'Readings that the warehouse had in the range when it was fetched.';
COMMENT ON COLUMN metersync.events.workflow_id IS 'Temporal workflow that recorded the event.';
COMMENT ON COLUMN metersync.events.workflow_run_id IS 'Its run.';
COMMENT ON COLUMN metersync.events.payload_dropped_at IS 'When payload or body was dropped for its age: the id stays.';
COMMENT ON COLUMN metersync.runs.kind IS 'full: everything that the service has; reconcile: what was updated lately.';
COMMENT ON COLUMN metersync.runs.rows_missed IS 'Rows that the run had to change though an event should have told of it.';
COMMENT ON COLUMN metersync.runs.drift IS 'Pages that moved while they were read, over all passes.';
COMMENT ON COLUMN metersync.runs.requests IS 'Requests that were sent to the service.';
COMMENT ON COLUMN metersync.runs.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON TABLE metersync.deletes IS 'Rows that a run found absent from the service: tombstoned, or kept until somebody decides.';
COMMENT ON COLUMN metersync.deletes.run_id IS 'The run.';
COMMENT ON COLUMN metersync.deletes.company_id IS 'Company of the row.';
COMMENT ON COLUMN metersync.deletes.resource IS 'Resource of the row.';
COMMENT ON COLUMN metersync.deletes.record_id IS 'Id of the row.';
COMMENT ON COLUMN metersync.deletes.state IS 'quarantined: more rows than the cap, kept until somebody decides; applied: tombstoned; rejected: kept; undone: revived.';
COMMENT ON COLUMN metersync.deletes.absent_since IS 'When the first of the passes began that did not see it.';
COMMENT ON COLUMN metersync.deletes.noted_at IS 'When the run noted it.';
COMMENT ON COLUMN metersync.deletes.decided_at IS 'When somebody decided.';
COMMENT ON TABLE metersync.interval_fetches IS 'Ranges of each meter''s readings that were fetched.';
COMMENT ON COLUMN metersync.interval_fetches.meter_id IS 'The meter.';
COMMENT ON COLUMN metersync.interval_fetches.fetched IS 'All ranges that were fetched, merged.';
COMMENT ON COLUMN metersync.interval_fetches.updated_at IS 'When the last one was added.';
COMMENT ON TABLE metersync.service_workers IS 'Workers that share the one limit of requests to the service.';
COMMENT ON COLUMN metersync.service_workers.worker_id IS 'A worker process.';
COMMENT ON COLUMN metersync.service_workers.seen_at IS 'When it last said that it lives.';
COMMENT ON TABLE metersync.service_gate IS 'The gate of the service: whether all workers wait, and the pace that it bears.';
COMMENT ON COLUMN metersync.service_gate.one IS 'Always true: there is one row.';
COMMENT ON COLUMN metersync.service_gate.closed_until IS 'Nobody sends a request before this time.';
COMMENT ON COLUMN metersync.service_gate.concurrency IS 'Requests at once over all workers; NULL while the configured limit holds.';
COMMENT ON COLUMN metersync.service_gate.updated_at IS 'When a worker last changed it.';
COMMENT ON COLUMN metersync.events.outcome IS 'pending: its record waits to be read again; applied; superseded: a newer state was already known; ignored: unknown type; dead: it cannot be applied, see error; missing: the service never showed its record, however long it was looked for.';
