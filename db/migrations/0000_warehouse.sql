CREATE SCHEMA "utility";
--> statement-breakpoint
CREATE SCHEMA "metersync";
--> statement-breakpoint
CREATE TABLE "utility"."companies" (
	"id" uuid PRIMARY KEY NOT NULL,
	"external_id" text,
	"public_id" text,
	"name" text,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text
);
--> statement-breakpoint
CREATE TABLE "utility"."connection_sites" (
	"connection_id" uuid NOT NULL,
	"site_id" uuid NOT NULL,
	"account_ids" text[] NOT NULL,
	"datasource_types" text[] NOT NULL,
	CONSTRAINT "connection_sites_connection_id_site_id_pk" PRIMARY KEY("connection_id","site_id")
);
--> statement-breakpoint
CREATE TABLE "utility"."connection_status_changes" (
	"connection_id" uuid NOT NULL,
	"old_status" text,
	"status" text NOT NULL,
	"at" timestamp(6) with time zone NOT NULL,
	"event_id" text NOT NULL,
	CONSTRAINT "connection_status_changes_connection_id_at_status_pk" PRIMARY KEY("connection_id","at","status")
);
--> statement-breakpoint
CREATE TABLE "utility"."connections" (
	"id" uuid PRIMARY KEY NOT NULL,
	"company_id" uuid,
	"external_id" text,
	"datasource" text,
	"status" text,
	"url" text,
	"created" timestamp(6) with time zone,
	"updated" timestamp(6) with time zone,
	"raw_updated" timestamp(6) with time zone,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text,
	CONSTRAINT "connections_times_are_finite" CHECK (isfinite(created) and isfinite(updated))
);
--> statement-breakpoint
CREATE TABLE "utility"."documents" (
	"id" uuid PRIMARY KEY NOT NULL,
	"company_id" uuid,
	"site_id" uuid,
	"created" timestamp(6) with time zone,
	"updated" timestamp(6) with time zone,
	"raw_updated" timestamp(6) with time zone,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text,
	CONSTRAINT "documents_times_are_finite" CHECK (isfinite(created) and isfinite(updated))
);
--> statement-breakpoint
CREATE TABLE "utility"."intervals" (
	"meter_id" text NOT NULL,
	"start_at" timestamp(6) with time zone NOT NULL,
	"granularity_seconds" integer NOT NULL,
	"usage_units" text NOT NULL,
	"usage" numeric,
	"quality" text,
	"updated" timestamp(6) with time zone,
	"synced_at" timestamp(6) with time zone NOT NULL,
	CONSTRAINT "intervals_meter_id_start_at_granularity_seconds_usage_units_pk" PRIMARY KEY("meter_id","start_at","granularity_seconds","usage_units")
) PARTITION BY RANGE ("start_at");
--> statement-breakpoint
CREATE TABLE "utility"."meters" (
	"id" text PRIMARY KEY NOT NULL,
	"company_id" uuid,
	"site_id" uuid,
	"account_id" text,
	"datasource_type" text,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text
);
--> statement-breakpoint
CREATE TABLE "utility"."sites" (
	"id" uuid PRIMARY KEY NOT NULL,
	"company_id" uuid,
	"name" text,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text
);
--> statement-breakpoint
CREATE TABLE "utility"."usage_data" (
	"id" uuid PRIMARY KEY NOT NULL,
	"company_id" uuid,
	"document_id" uuid,
	"meter_id" text,
	"start_date" date,
	"end_date" date,
	"usage" numeric,
	"usage_units" text,
	"created" timestamp(6) with time zone,
	"updated" timestamp(6) with time zone,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text
);
--> statement-breakpoint
CREATE TABLE "metersync"."catch_ups" (
	"kind" text PRIMARY KEY NOT NULL,
	"awake" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "metersync"."events" (
	"id" text PRIMARY KEY NOT NULL,
	"type" text NOT NULL,
	"kind" text NOT NULL,
	"record_id" text,
	"company_id" uuid,
	"occurred_at" timestamp(6) with time zone,
	"range_start" timestamp(6) with time zone,
	"range_end" timestamp(6) with time zone,
	"received_at" timestamp(6) with time zone NOT NULL,
	"recorded_at" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"payload" jsonb,
	"body" "bytea",
	"outcome" text NOT NULL,
	"applied_at" timestamp(6) with time zone,
	"error" text,
	"attempts" integer DEFAULT 0 NOT NULL,
	"next_attempt_at" timestamp(6) with time zone,
	CONSTRAINT "events_outcome" CHECK (outcome in ('pending', 'applied', 'superseded', 'ignored', 'dead')),
	CONSTRAINT "events_ranges_have_a_length" CHECK (range_end >= range_start),
	CONSTRAINT "events_dead_say_why" CHECK (outcome <> 'dead' or error is not null),
	CONSTRAINT "events_keep_their_bytes" CHECK (payload is not null or body is not null)
);
--> statement-breakpoint
CREATE UNLOGGED TABLE "metersync"."pages" (
	"run_id" uuid NOT NULL,
	"company_id" uuid NOT NULL,
	"resource" text NOT NULL,
	"pass" integer NOT NULL,
	"asked" integer NOT NULL,
	"current_page" integer NOT NULL,
	"total" bigint,
	"has_next" boolean NOT NULL,
	"ids" text[] NOT NULL,
	"read_at" timestamp(6) with time zone NOT NULL,
	CONSTRAINT "pages_run_id_company_id_resource_pass_asked_pk" PRIMARY KEY("run_id","company_id","resource","pass","asked")
);
--> statement-breakpoint
CREATE TABLE "metersync"."rejected_records" (
	"resource" text NOT NULL,
	"record_id" text NOT NULL,
	"company_id" uuid,
	"error" text NOT NULL,
	"record" text NOT NULL,
	"rejected_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "rejected_records_resource_record_id_pk" PRIMARY KEY("resource","record_id")
);
--> statement-breakpoint
CREATE TABLE "metersync"."runs" (
	"run_id" uuid NOT NULL,
	"company_id" uuid,
	"resource" text,
	"state" text NOT NULL,
	"started_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp(6) with time zone,
	"pages" integer DEFAULT 0 NOT NULL,
	"passes" integer DEFAULT 0 NOT NULL,
	"total_said" bigint,
	"distinct_ids" bigint,
	"rows_inserted" bigint DEFAULT 0 NOT NULL,
	"rows_changed" bigint DEFAULT 0 NOT NULL,
	"rows_unchanged" bigint DEFAULT 0 NOT NULL,
	"rows_tombstoned" bigint DEFAULT 0 NOT NULL,
	"rows_rejected" bigint DEFAULT 0 NOT NULL,
	"error" text,
	CONSTRAINT "runs_key" UNIQUE NULLS NOT DISTINCT("run_id","company_id","resource"),
	CONSTRAINT "runs_state" CHECK (state in ('running', 'complete', 'partial', 'suspect', 'failed'))
);
--> statement-breakpoint
CREATE INDEX "connections_company" ON "utility"."connections" USING btree ("company_id");--> statement-breakpoint
CREATE INDEX "documents_company" ON "utility"."documents" USING btree ("company_id");--> statement-breakpoint
CREATE INDEX "meters_company" ON "utility"."meters" USING btree ("company_id");--> statement-breakpoint
CREATE INDEX "sites_company" ON "utility"."sites" USING btree ("company_id");--> statement-breakpoint
CREATE INDEX "usage_data_company" ON "utility"."usage_data" USING btree ("company_id");--> statement-breakpoint
CREATE INDEX "usage_data_document" ON "utility"."usage_data" USING btree ("document_id");--> statement-breakpoint
CREATE INDEX "usage_data_meter" ON "utility"."usage_data" USING btree ("meter_id");--> statement-breakpoint
CREATE INDEX "events_record" ON "metersync"."events" USING btree ("record_id","recorded_at");--> statement-breakpoint
CREATE INDEX "events_pending" ON "metersync"."events" USING btree ("kind","company_id","record_id") WHERE outcome = 'pending';--> statement-breakpoint
CREATE INDEX "events_unhappy" ON "metersync"."events" USING btree ("outcome","recorded_at") WHERE outcome in ('dead', 'ignored');--> statement-breakpoint
CREATE INDEX "runs_company" ON "metersync"."runs" USING btree ("company_id","resource","finished_at");