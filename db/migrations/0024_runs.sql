CREATE TABLE "metersync"."run_companies" (
	"run_id" uuid NOT NULL,
	"company_id" uuid NOT NULL,
	"refused" boolean DEFAULT false NOT NULL,
	CONSTRAINT "run_companies_run_id_company_id_pk" PRIMARY KEY("run_id","company_id")
);
--> statement-breakpoint
ALTER TABLE "metersync"."runs" ADD COLUMN "workflow_id" text;--> statement-breakpoint
ALTER TABLE "metersync"."service_workers" ADD COLUMN "held" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_under_way" ON "metersync"."runs" USING btree ("run_id") WHERE finished_at is null;
--> statement-breakpoint
COMMENT ON COLUMN metersync.runs.workflow_id IS 'Temporal workflow of the run, as temporal workflow show -w takes it; NULL for parts.';
COMMENT ON TABLE metersync.run_companies IS 'Companies that were chosen for a run; a run of all has none.';
COMMENT ON COLUMN metersync.run_companies.run_id IS 'The run.';
COMMENT ON COLUMN metersync.run_companies.company_id IS 'The company.';
COMMENT ON COLUMN metersync.run_companies.refused IS 'Whether the service does not have it: it was not read.';
COMMENT ON COLUMN metersync.service_workers.held IS 'Requests at once that are its part of the limit, or that it still has in flight.';
