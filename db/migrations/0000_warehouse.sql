CREATE SCHEMA "utility";
--> statement-breakpoint
CREATE SCHEMA "history";
--> statement-breakpoint
CREATE SCHEMA "metersync";
--> statement-breakpoint
CREATE SCHEMA "ops";
--> statement-breakpoint
-- A time of the service: ISO 8601, or Unix seconds. What is finer than a microsecond is cut off and not rounded: an event may
-- tell a time more finely than its record does, which must not count as older for it.
CREATE FUNCTION metersync.read_time(value text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  select case
    when value ~ '^\d{4}-\d\d-\d\d' then
      case
        when length(value) > 26 then regexp_replace(value, '([.,]\d{6})\d+', '\1')::timestamptz
        else value::timestamptz
      end
    when value ~ '^\d{9,11}$' then to_timestamp(value::bigint)
    else ('not a time: ' || nullif(value, ''))::timestamptz
  end
$$;
--> statement-breakpoint
-- What should be an array and isn't counts as empty: one odd record must not make its page unreadable.
CREATE FUNCTION metersync.elements(value jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case when jsonb_typeof(value) = 'array' then value else '[]'::jsonb end
$$;
--> statement-breakpoint
-- A reference is an object with an id, or the id itself.
CREATE FUNCTION metersync.id_of(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case jsonb_typeof(value) when 'object' then value ->> 'id' when 'string' then value #>> '{}' end
$$;
--> statement-breakpoint
CREATE FUNCTION metersync.text_array(value jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select coalesce(array_agg(item order by place), '{}')
  from jsonb_array_elements_text(metersync.elements(value)) with ordinality as t (item, place)
$$;
--> statement-breakpoint
-- However a UUID is spelled: in capitals, without hyphens, in braces.
CREATE FUNCTION metersync.uuid_of(value text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case
    when value ~ '^(\{[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}|[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7})$' then value::uuid
  end
$$;
--> statement-breakpoint
CREATE FUNCTION metersync.boolean_of(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case lower(value) when 'true' then true when 'false' then false end
$$;
--> statement-breakpoint
CREATE FUNCTION metersync.number_of(value text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case when length(value) <= 200 and value ~ '^-?(\d+\.?\d*|\.\d+)([eE][-+]?\d\d?)?$' then value::numeric end
$$;
--> statement-breakpoint
-- As before, in a third of the time: without a cast that depends on the session's DateStyle it is made part of the statement.
CREATE FUNCTION metersync.date_of(value text) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case
    when value ~ '^[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)([T ]|$)'
        and substr(value, 1, 4) <> '0000'
      or value ~ '^([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29([T ]|$)'
    then make_date(substr(value, 1, 4)::int, substr(value, 6, 2)::int, substr(value, 9, 2)::int)
  end
$$;
--> statement-breakpoint
-- Postgres's own words (time zone "..." not recognized) say more than a violated constraint would.
CREATE FUNCTION metersync.is_time_zone(name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select name is null or timezone(name, timestamptz '2000-01-01 00:00Z') is not null
$$;
--> statement-breakpoint
-- Texts of both, the first as it is when it has all of the second's.
CREATE FUNCTION metersync.union_of(known text[], more text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case when more <@ known then known else known || array(select unnest(more) except select unnest(known) order by 1) end
$$;
--> statement-breakpoint
-- Texts that a field has: NULL once they are more than an enumeration has.
CREATE FUNCTION metersync.enum_union(known text[], more text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case when known is not null and more is not null and cardinality(metersync.union_of(known, more)) <= 20
    then metersync.union_of(known, more) end
$$;
--> statement-breakpoint
-- Readings of any year may come, and a partition of each of their months would take more locks than a server has. Months within
-- this span have one each; what lies before and after it stands in two partitions of their own.
CREATE FUNCTION metersync.interval_months() RETURNS tstzrange LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select '[2000-01-01 00:00:00+00,2050-01-01 00:00:00+00)'::tstzrange
$$;
--> statement-breakpoint
-- An id that may be any text: of a UUID its one spelling.
CREATE FUNCTION metersync.canonical_id(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select coalesce(metersync.uuid_of(value)::text, value)
$$;
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
	"digest" "bytea",
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
	"usage_read_at" timestamp(6) with time zone,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text,
	"revised_document_id" uuid GENERATED ALWAYS AS (metersync.uuid_of(raw ->> 'revisedDocumentId')) STORED,
	"digest" "bytea",
	CONSTRAINT "documents_times_are_finite" CHECK (isfinite(created) and isfinite(updated))
);
--> statement-breakpoint
-- By hand: Drizzle knows no partitions.
CREATE TABLE "utility"."intervals" (
	"meter_id" text NOT NULL,
	"start_at" timestamp(6) with time zone NOT NULL,
	"granularity_seconds" integer NOT NULL,
	"usage_units" text NOT NULL,
	"usage" numeric,
	"quality" text,
	"updated" timestamp(6) with time zone,
	"synced_at" timestamp(6) with time zone NOT NULL,
	CONSTRAINT "intervals_meter_id_start_at_granularity_seconds_usage_units_pk" PRIMARY KEY("meter_id","start_at","granularity_seconds","usage_units"),
	CONSTRAINT "intervals_usage_is_finite" CHECK (usage > '-Infinity' and usage < 'Infinity'),
	CONSTRAINT "intervals_granularity_is_positive" CHECK (granularity_seconds > 0)
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
	"deleted_reason" text,
	"digest" "bytea"
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
	"deleted_reason" text,
	"is_estimated" boolean GENERATED ALWAYS AS (metersync.boolean_of(raw ->> 'isEstimated')) STORED,
	"exclusion" boolean GENERATED ALWAYS AS (metersync.boolean_of(raw ->> 'exclusion')) STORED,
	"net_metering_type" text GENERATED ALWAYS AS (raw ->> 'netMeteringType') STORED,
	"billed_demand" numeric GENERATED ALWAYS AS (metersync.number_of(raw ->> 'billedDemand')) STORED,
	"digest" "bytea",
	CONSTRAINT "usage_data_usage_is_finite" CHECK (usage > '-Infinity' and usage < 'Infinity')
);
--> statement-breakpoint
CREATE TABLE "metersync"."also_listed" (
	"resource" text NOT NULL,
	"record_id" text NOT NULL,
	"company_id" uuid NOT NULL,
	CONSTRAINT "also_listed_resource_record_id_company_id_pk" PRIMARY KEY("resource","record_id","company_id")
);
--> statement-breakpoint
CREATE TABLE "metersync"."catch_ups" (
	"kind" text PRIMARY KEY NOT NULL,
	"awake" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "metersync"."data_checks" (
	"company_id" uuid NOT NULL,
	"run_with" text NOT NULL,
	"seen_until" timestamp(6) with time zone NOT NULL,
	"today" date NOT NULL,
	"checks_off" text[] NOT NULL,
	CONSTRAINT "data_checks_company_id_run_with_pk" PRIMARY KEY("company_id","run_with")
);
--> statement-breakpoint
CREATE TABLE "metersync"."deletes" (
	"run_id" uuid NOT NULL,
	"company_id" uuid,
	"resource" text NOT NULL,
	"record_id" text NOT NULL,
	"state" text NOT NULL,
	"reason" text DEFAULT 'absent' NOT NULL,
	"updated" timestamp(6) with time zone,
	"absent_since" timestamp(6) with time zone NOT NULL,
	"noted_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"decided_at" timestamp(6) with time zone,
	CONSTRAINT "deletes_run_id_resource_record_id_pk" PRIMARY KEY("run_id","resource","record_id"),
	CONSTRAINT "deletes_state" CHECK (state in ('quarantined', 'applied', 'rejected', 'undone')),
	CONSTRAINT "deletes_reason" CHECK (reason in ('absent', 'listed'))
);
--> statement-breakpoint
CREATE TABLE "metersync"."field_catalogue" (
	"resource" text NOT NULL,
	"api_version" text NOT NULL,
	"path" text NOT NULL,
	"types" text[] NOT NULL,
	"records" bigint NOT NULL,
	"first_seen_at" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"last_seen_at" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"example" text,
	"enum_values" text[],
	"collapsed" boolean DEFAULT false NOT NULL,
	CONSTRAINT "field_catalogue_resource_api_version_path_pk" PRIMARY KEY("resource","api_version","path")
);
--> statement-breakpoint
CREATE TABLE "metersync"."interval_fetches" (
	"meter_id" text PRIMARY KEY NOT NULL,
	"fetched" "tstzmultirange" NOT NULL,
	"updated_at" timestamp(6) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "metersync"."journal" (
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
	"arrived_as" text NOT NULL,
	"error" text,
	"error_code" text,
	"interval_count" bigint,
	"workflow_id" text,
	"workflow_run_id" text,
	"payload_dropped_at" timestamp(6) with time zone,
	CONSTRAINT "journal_arrived_as" CHECK (arrived_as in ('pending', 'applied', 'superseded', 'ignored', 'dead')),
	CONSTRAINT "journal_ranges_have_a_length" CHECK (range_end >= range_start),
	CONSTRAINT "journal_dead_say_why" CHECK (arrived_as <> 'dead' or error is not null),
	CONSTRAINT "journal_keeps_bytes" CHECK (payload is not null or body is not null or payload_dropped_at is not null)
);
--> statement-breakpoint
-- By hand: what a crash takes is read again.
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
CREATE TABLE "metersync"."parked" (
	"code" text PRIMARY KEY NOT NULL,
	"message" text NOT NULL,
	"since" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"attempts" integer NOT NULL,
	"next_attempt_at" timestamp(6) with time zone NOT NULL
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
CREATE TABLE "metersync"."run_companies" (
	"run_id" uuid NOT NULL,
	"company_id" uuid NOT NULL,
	"refused" boolean DEFAULT false NOT NULL,
	CONSTRAINT "run_companies_run_id_company_id_pk" PRIMARY KEY("run_id","company_id")
);
--> statement-breakpoint
CREATE TABLE "metersync"."runs" (
	"run_id" uuid NOT NULL,
	"company_id" uuid,
	"resource" text,
	"kind" text DEFAULT 'full' NOT NULL,
	"workflow_id" text,
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
	"rows_missed" bigint DEFAULT 0 NOT NULL,
	"drift" integer DEFAULT 0 NOT NULL,
	"requests" integer DEFAULT 0 NOT NULL,
	"error" text,
	"error_code" text,
	CONSTRAINT "runs_key" UNIQUE NULLS NOT DISTINCT("run_id","company_id","resource"),
	CONSTRAINT "runs_kind" CHECK (kind in ('full', 'reconcile')),
	CONSTRAINT "runs_state" CHECK (state in ('running', 'complete', 'partial', 'suspect', 'failed'))
);
--> statement-breakpoint
CREATE TABLE "metersync"."service_gate" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"closed_until" timestamp(6) with time zone,
	"updated_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "service_gate_has_one_row" CHECK (one)
);
--> statement-breakpoint
CREATE TABLE "metersync"."service_workers" (
	"worker_id" uuid PRIMARY KEY NOT NULL,
	"seen_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"held" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "metersync"."settlements" (
	"kind" text NOT NULL,
	"record_id" text NOT NULL,
	"owner" text NOT NULL,
	"since" timestamp(6) with time zone NOT NULL,
	"read_at" timestamp(6) with time zone NOT NULL,
	"shown" timestamp(6) with time zone NOT NULL,
	"settled_at" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"outcome" text NOT NULL,
	"updates_only" boolean DEFAULT false NOT NULL,
	"error" text,
	"error_code" text,
	"attempts" integer DEFAULT 0 NOT NULL,
	"intervals_told" bigint,
	"intervals_found" bigint,
	CONSTRAINT "settlements_outcome" CHECK (outcome in ('applied', 'superseded', 'dead', 'missing'))
);
--> statement-breakpoint
CREATE TABLE "metersync"."stale_records" (
	"key" text PRIMARY KEY GENERATED ALWAYS AS (kind || '/' || record_id) STORED NOT NULL,
	"queue" text GENERATED ALWAYS AS (kind || '/' || owner) STORED NOT NULL,
	"kind" text NOT NULL,
	"record_id" text NOT NULL,
	"owner" text NOT NULL,
	"events" integer NOT NULL,
	"since" timestamp(6) with time zone NOT NULL,
	"told_at" timestamp(6) with time zone NOT NULL,
	"wanted" timestamp(6) with time zone,
	"due_at" timestamp(6) with time zone NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"tried_since" timestamp(6) with time zone,
	"error" text,
	"error_code" text
);
--> statement-breakpoint
CREATE TABLE "metersync"."typed_columns" (
	"view_name" text NOT NULL,
	"position" integer NOT NULL,
	"name" text NOT NULL,
	"path" text NOT NULL,
	"type" text NOT NULL,
	CONSTRAINT "typed_columns_view_name_position_pk" PRIMARY KEY("view_name","position"),
	CONSTRAINT "typed_columns_name" UNIQUE("view_name","name")
);
--> statement-breakpoint
CREATE TABLE "metersync"."typed_views" (
	"name" text PRIMARY KEY NOT NULL,
	"resource" text NOT NULL,
	"path" text NOT NULL,
	"definition" text NOT NULL,
	"made_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "typed_views_place" UNIQUE("resource","path")
);
--> statement-breakpoint
CREATE TABLE "history"."companies" (
	"id" uuid NOT NULL,
	"external_id" text,
	"public_id" text,
	"name" text,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text,
	"valid_from" timestamp(6) with time zone NOT NULL,
	"valid_to" timestamp(6) with time zone NOT NULL,
	"ended_by_kind" text,
	"ended_by" text
);
--> statement-breakpoint
CREATE TABLE "history"."connections" (
	"id" uuid NOT NULL,
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
	"valid_from" timestamp(6) with time zone NOT NULL,
	"valid_to" timestamp(6) with time zone NOT NULL,
	"ended_by_kind" text,
	"ended_by" text
);
--> statement-breakpoint
CREATE TABLE "history"."documents" (
	"id" uuid NOT NULL,
	"company_id" uuid,
	"site_id" uuid,
	"created" timestamp(6) with time zone,
	"updated" timestamp(6) with time zone,
	"raw_updated" timestamp(6) with time zone,
	"usage_read_at" timestamp(6) with time zone,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text,
	"revised_document_id" uuid GENERATED ALWAYS AS (metersync.uuid_of(raw ->> 'revisedDocumentId')) STORED,
	"valid_from" timestamp(6) with time zone NOT NULL,
	"valid_to" timestamp(6) with time zone NOT NULL,
	"ended_by_kind" text,
	"ended_by" text
);
--> statement-breakpoint
CREATE TABLE "history"."meters" (
	"id" text NOT NULL,
	"company_id" uuid,
	"site_id" uuid,
	"account_id" text,
	"datasource_type" text,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text,
	"valid_from" timestamp(6) with time zone NOT NULL,
	"valid_to" timestamp(6) with time zone NOT NULL,
	"ended_by_kind" text,
	"ended_by" text
);
--> statement-breakpoint
CREATE TABLE "history"."sites" (
	"id" uuid NOT NULL,
	"company_id" uuid,
	"name" text,
	"raw" jsonb,
	"api_version" text,
	"first_synced_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"synced_at" timestamp(6) with time zone,
	"deleted_at" timestamp(6) with time zone,
	"deleted_reason" text,
	"valid_from" timestamp(6) with time zone NOT NULL,
	"valid_to" timestamp(6) with time zone NOT NULL,
	"ended_by_kind" text,
	"ended_by" text
);
--> statement-breakpoint
CREATE TABLE "history"."usage_data" (
	"id" uuid NOT NULL,
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
	"deleted_reason" text,
	"is_estimated" boolean GENERATED ALWAYS AS (metersync.boolean_of(raw ->> 'isEstimated')) STORED,
	"exclusion" boolean GENERATED ALWAYS AS (metersync.boolean_of(raw ->> 'exclusion')) STORED,
	"net_metering_type" text GENERATED ALWAYS AS (raw ->> 'netMeteringType') STORED,
	"billed_demand" numeric GENERATED ALWAYS AS (metersync.number_of(raw ->> 'billedDemand')) STORED,
	"valid_from" timestamp(6) with time zone NOT NULL,
	"valid_to" timestamp(6) with time zone NOT NULL,
	"ended_by_kind" text,
	"ended_by" text
);
--> statement-breakpoint
CREATE TABLE "ops"."company_overrides" (
	"company_id" uuid PRIMARY KEY NOT NULL,
	"time_zone" text,
	"emission_region" text,
	CONSTRAINT "company_overrides_time_zone" CHECK (metersync.is_time_zone(time_zone))
);
--> statement-breakpoint
CREATE TABLE "ops"."contract_changes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."contract_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"seen_at" timestamp(6) with time zone DEFAULT clock_timestamp() NOT NULL,
	"resource" text NOT NULL,
	"api_version" text NOT NULL,
	"path" text NOT NULL,
	"change" text NOT NULL,
	"value" text,
	"is_baseline" boolean NOT NULL,
	CONSTRAINT "contract_changes_change" CHECK (change in ('resource', 'path', 'type', 'value'))
);
--> statement-breakpoint
CREATE TABLE "ops"."data_issues" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."data_issues_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"check_name" text NOT NULL,
	"severity" text NOT NULL,
	"company_id" uuid,
	"entity_type" text NOT NULL,
	"entity_id" text NOT NULL,
	"subject" text DEFAULT '' NOT NULL,
	"evidence" jsonb NOT NULL,
	"opened_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"last_seen_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	"closed_at" timestamp(6) with time zone,
	"closed_reason" text,
	"acknowledged_at" timestamp(6) with time zone,
	"acknowledged_note" text,
	CONSTRAINT "data_issues_severity" CHECK (severity in ('error', 'warning', 'info')),
	CONSTRAINT "data_issues_closed_reason" CHECK (closed_reason is null or closed_at is not null and closed_reason in ('evidence_gone', 'check_off', 'check_removed')),
	CONSTRAINT "data_issues_acknowledged_note" CHECK (acknowledged_note is null or acknowledged_at is not null)
);
--> statement-breakpoint
CREATE TABLE "ops"."emission_factors" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."emission_factors_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"region" text DEFAULT '' NOT NULL,
	"datasource_type" text NOT NULL,
	"scope" smallint NOT NULL,
	"method" text DEFAULT '' NOT NULL,
	"valid_from" date DEFAULT '-infinity' NOT NULL,
	"valid_to" date DEFAULT 'infinity' NOT NULL,
	"units" text NOT NULL,
	"kg_co2e_per_unit" numeric NOT NULL,
	"source" text NOT NULL,
	"version" text DEFAULT '' NOT NULL,
	"created_at" timestamp(6) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "emission_factors_scope" CHECK (scope between 1 and 3),
	CONSTRAINT "emission_factors_method" CHECK (method in ('', 'location', 'market')),
	CONSTRAINT "emission_factors_valid" CHECK (valid_to > valid_from)
);
--> statement-breakpoint
CREATE TABLE "ops"."site_overrides" (
	"site_id" uuid PRIMARY KEY NOT NULL,
	"time_zone" text,
	"emission_region" text,
	"floor_area" numeric,
	"floor_area_units" text,
	CONSTRAINT "site_overrides_time_zone" CHECK (metersync.is_time_zone(time_zone))
);
--> statement-breakpoint
CREATE TABLE "ops"."unit_factors" (
	"units" text NOT NULL,
	"datasource_type" text DEFAULT '' NOT NULL,
	"dimension" text NOT NULL,
	"standard_units" text NOT NULL,
	"factor" numeric NOT NULL,
	"source" text NOT NULL,
	CONSTRAINT "unit_factors_units_datasource_type_pk" PRIMARY KEY("units","datasource_type")
);
--> statement-breakpoint
CREATE INDEX "companies_external" ON "utility"."companies" USING btree ("external_id");
--> statement-breakpoint
CREATE INDEX "connections_company" ON "utility"."connections" USING btree ("company_id");
--> statement-breakpoint
CREATE INDEX "documents_company" ON "utility"."documents" USING btree ("company_id");
--> statement-breakpoint
CREATE INDEX "documents_revised" ON "utility"."documents" USING btree ("company_id") WHERE revised_document_id is not null;
--> statement-breakpoint
CREATE INDEX "intervals_start" ON "utility"."intervals" USING brin ("start_at");
--> statement-breakpoint
CREATE INDEX "meters_company" ON "utility"."meters" USING btree ("company_id");
--> statement-breakpoint
CREATE INDEX "sites_company" ON "utility"."sites" USING btree ("company_id");
--> statement-breakpoint
CREATE INDEX "usage_data_company" ON "utility"."usage_data" USING btree ("company_id");
--> statement-breakpoint
CREATE INDEX "usage_data_document" ON "utility"."usage_data" USING btree ("document_id");
--> statement-breakpoint
CREATE INDEX "usage_data_meter" ON "utility"."usage_data" USING btree ("meter_id");
--> statement-breakpoint
CREATE INDEX "also_listed_company" ON "metersync"."also_listed" USING btree ("company_id","resource");
--> statement-breakpoint
CREATE INDEX "deletes_undecided" ON "metersync"."deletes" USING btree ("company_id","resource") WHERE state = 'quarantined';
--> statement-breakpoint
CREATE INDEX "deletes_record" ON "metersync"."deletes" USING btree ("resource","record_id");
--> statement-breakpoint
CREATE INDEX "journal_record" ON "metersync"."journal" USING btree ("record_id","recorded_at");
--> statement-breakpoint
CREATE INDEX "journal_received" ON "metersync"."journal" USING btree ("received_at","id");
--> statement-breakpoint
CREATE INDEX "journal_unhappy" ON "metersync"."journal" USING btree ("arrived_as","recorded_at") WHERE arrived_as in ('dead', 'ignored');
--> statement-breakpoint
CREATE INDEX "journal_with_payload" ON "metersync"."journal" USING btree ("received_at") WHERE payload_dropped_at is null;
--> statement-breakpoint
CREATE INDEX "runs_company" ON "metersync"."runs" USING btree ("company_id","resource","finished_at");
--> statement-breakpoint
CREATE INDEX "runs_under_way" ON "metersync"."runs" USING btree ("run_id") WHERE finished_at is null;
--> statement-breakpoint
CREATE INDEX "settlements_record" ON "metersync"."settlements" USING btree ("kind","record_id","read_at");
--> statement-breakpoint
CREATE INDEX "settlements_settled" ON "metersync"."settlements" USING btree ("settled_at");
--> statement-breakpoint
CREATE INDEX "settlements_unhappy" ON "metersync"."settlements" USING btree ("outcome","error_code") WHERE outcome <> 'applied';
--> statement-breakpoint
CREATE INDEX "settlements_short" ON "metersync"."settlements" USING btree ("owner") WHERE intervals_found < intervals_told;
--> statement-breakpoint
CREATE INDEX "stale_records_queue" ON "metersync"."stale_records" USING btree ("queue","due_at");
--> statement-breakpoint
CREATE INDEX "stale_records_due" ON "metersync"."stale_records" USING btree ("kind","due_at");
--> statement-breakpoint
CREATE INDEX "stale_records_failed" ON "metersync"."stale_records" USING btree ("error_code") WHERE error_code is not null;
--> statement-breakpoint
CREATE INDEX "history_companies_id" ON "history"."companies" USING btree ("id","valid_to");
--> statement-breakpoint
CREATE INDEX "history_connections_id" ON "history"."connections" USING btree ("id","valid_to");
--> statement-breakpoint
CREATE INDEX "history_documents_id" ON "history"."documents" USING btree ("id","valid_to");
--> statement-breakpoint
CREATE INDEX "history_documents_company" ON "history"."documents" USING btree ("company_id");
--> statement-breakpoint
CREATE INDEX "history_meters_id" ON "history"."meters" USING btree ("id","valid_to");
--> statement-breakpoint
CREATE INDEX "history_sites_id" ON "history"."sites" USING btree ("id","valid_to");
--> statement-breakpoint
CREATE INDEX "history_usage_data_id" ON "history"."usage_data" USING btree ("id","valid_to");
--> statement-breakpoint
CREATE INDEX "contract_changes_seen" ON "ops"."contract_changes" USING btree ("seen_at");
--> statement-breakpoint
CREATE UNIQUE INDEX "data_issues_open" ON "ops"."data_issues" USING btree ("check_name","entity_type","entity_id","subject") WHERE closed_at is null;
--> statement-breakpoint
CREATE INDEX "data_issues_company" ON "ops"."data_issues" USING btree ("company_id","check_name");
--> statement-breakpoint
-- Keeps the state that a change ends, in the transaction of the change. It ends for an event that waits for the record
-- or that came in this transaction, else for the run that is reading the company. A statement that changes no record
-- costs a look at an empty table. Arguments: the column that names the record in the journal, '' for none; the columns
-- whose change makes another state, separated by commas.
CREATE FUNCTION metersync.keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
declare
  kept text;
  event text := 'null::text';
  company text := case when TG_TABLE_NAME = 'companies' then 'o.id' else 'o.company_id' end;
  at timestamptz;
begin
  if not exists (select from old_rows) then
    return null;
  end if;
  at := clock_timestamp();
  select string_agg(quote_ident(attname), ', ') into kept from pg_attribute
  where attrelid = format('history.%I', TG_TABLE_NAME)::regclass and attnum > 0 and not attisdropped
    and attgenerated = '' and attname not in ('valid_from', 'valid_to', 'ended_by_kind', 'ended_by');
  if TG_ARGV[0] <> '' then
    event := format($sql$(
      select e.id from metersync.journal e
      where e.record_id = o.%1$I::text and e.recorded_at >= least(now(), (
        select min(s.since) from metersync.stale_records s
        where s.key in ('connection/' || o.%1$I, 'document/' || o.%1$I)))
      order by e.recorded_at desc limit 1)$sql$, TG_ARGV[0]);
  end if;
  execute format($sql$
    with ended as (
      select o.*, %3$s as event, (
          select r.run_id::text from metersync.runs r where r.company_id = %4$s and r.state = 'running'
          order by r.started_at desc limit 1) as run
      from old_rows o join new_rows n using (id)
      where (%5$s) is distinct from (%6$s)
    )
    insert into history.%1$I (%2$s, valid_from, valid_to, ended_by_kind, ended_by)
    select %2$s, began, greatest($1, began), case when event is not null then 'event' when run is not null then 'run' end,
      coalesce(event, run)
    from (
      select *, coalesce((select max(h.valid_to) from history.%1$I h where h.id = ended.id), first_synced_at) as began
      from ended
    ) state$sql$,
    TG_TABLE_NAME, kept, event, company, 'o.' || replace(TG_ARGV[1], ',', ', o.'), 'n.' || replace(TG_ARGV[1], ',', ', n.'))
  using at;
  return null;
end
$$;
--> statement-breakpoint
-- What a row of the catalogue says more than before. Until a run has ended that began after the resource was first seen, it is
-- the baseline: everything is new then.
CREATE FUNCTION metersync.note_contract_changes() RETURNS trigger LANGUAGE plpgsql AS $$
declare
  baseline boolean := not exists (
    select from metersync.field_catalogue root join metersync.runs r
      on r.company_id is null and r.resource is null and r.finished_at > root.first_seen_at
    where root.resource = new.resource and root.api_version = new.api_version and root.path = '');
begin
  if tg_op = 'INSERT' then
    insert into ops.contract_changes (resource, api_version, path, change, value, is_baseline)
    values (new.resource, new.api_version, new.path, case when new.path = '' then 'resource' else 'path' end,
      array_to_string(new.types, ', '), baseline);
    return null;
  end if;
  insert into ops.contract_changes (resource, api_version, path, change, value, is_baseline)
  select new.resource, new.api_version, new.path, 'type', type, baseline
  from unnest(new.types) type where type <> all (old.types)
  union all
  select new.resource, new.api_version, new.path, 'value', value, baseline
  from unnest(new.enum_values) value where value <> all (old.enum_values);
  return null;
end
$$;
--> statement-breakpoint
-- What people tell of sites and units is part of what the checks compare. Who tells it need not know of the checks.
CREATE FUNCTION metersync.check_all_again() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
begin
  delete from metersync.data_checks;
  return null;
end
$$;
--> statement-breakpoint
CREATE TRIGGER keep_history AFTER UPDATE ON utility.companies REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION metersync.keep_history('', 'external_id,public_id,name,raw,api_version,deleted_at');
--> statement-breakpoint
CREATE TRIGGER keep_history AFTER UPDATE ON utility.sites REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION metersync.keep_history('', 'company_id,name,raw,api_version,deleted_at');
--> statement-breakpoint
CREATE TRIGGER keep_history AFTER UPDATE ON utility.connections REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION metersync.keep_history('id',
    'company_id,external_id,datasource,status,url,raw,api_version,deleted_at');
--> statement-breakpoint
CREATE TRIGGER keep_history AFTER UPDATE ON utility.documents REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION metersync.keep_history('id', 'company_id,site_id,raw,api_version,deleted_at');
--> statement-breakpoint
CREATE TRIGGER keep_history AFTER UPDATE ON utility.usage_data REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION metersync.keep_history('document_id',
    'company_id,document_id,meter_id,start_date,end_date,usage,usage_units,raw,api_version,deleted_at');
--> statement-breakpoint
CREATE TRIGGER keep_history AFTER UPDATE ON utility.meters REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION metersync.keep_history('',
    'company_id,site_id,account_id,datasource_type,raw,api_version,deleted_at');
--> statement-breakpoint
CREATE TRIGGER note_contract_changes_of_new AFTER INSERT ON metersync.field_catalogue
  FOR EACH ROW EXECUTE FUNCTION metersync.note_contract_changes();
--> statement-breakpoint
CREATE TRIGGER note_contract_changes AFTER UPDATE ON metersync.field_catalogue
  FOR EACH ROW WHEN (new.types <> old.types or new.enum_values <> old.enum_values)
  EXECUTE FUNCTION metersync.note_contract_changes();
--> statement-breakpoint
CREATE TRIGGER check_again AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ops.site_overrides FOR EACH STATEMENT EXECUTE FUNCTION metersync.check_all_again();
--> statement-breakpoint
CREATE TRIGGER check_again AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ops.company_overrides FOR EACH STATEMENT EXECUTE FUNCTION metersync.check_all_again();
--> statement-breakpoint
CREATE TRIGGER check_again AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ops.unit_factors FOR EACH STATEMENT EXECUTE FUNCTION metersync.check_all_again();
--> statement-breakpoint
INSERT INTO metersync.catch_ups (kind) VALUES ('connections'), ('documents'), ('intervals');
--> statement-breakpoint
-- Exact definitions (SI, NIST SP 811, the international yard and pound, the Btu of the International Table). Units of
-- several meanings (M of MCF is a thousand) follow the trade.
INSERT INTO ops.unit_factors (units, dimension, standard_units, factor, source)
select units, dimension, standard_units, factor, 'definition'
from (values
  ('energy', 'kWh', array['J', 'kJ', 'MJ', 'GJ', 'TJ', 'erg', 'Cal', 'kCal', 'MCal', 'Wh', 'kWh', 'MWh', 'GWh', 'Btu',
      'MMBtu', 'thm (EC)', 'thm (US)', 'thm (UK)', 'Dth (EC)', 'Dth (US)', 'Dth (UK)', 'ton hours'],
    array[1 / 3600000.0, 1 / 3600.0, 1 / 3.6, 1000 / 3.6, 1000000 / 3.6, 1 / 36000000000000.0, 4.184 / 3600000, 4.184 / 3600,
      4.184 / 3.6, 0.001, 1, 1000, 1000000, 1055.05585262 / 3600000, 1055.05585262 / 3.6, 105.505585262 / 3.6,
      105.4804 / 3.6, 105.505585257348 / 3.6, 1055.05585262 / 3.6, 1054.804 / 3.6, 1055.05585257348 / 3.6,
      12.66067023144 / 3.6]),
  ('power', 'kW', array['W', 'KW', 'kW', 'MW', 'GW'], array[0.001, 1, 1, 1000, 1000000]),
  ('apparent power', 'kVA', array['kVA'], array[1]),
  ('reactive power', 'kVAR', array['kVAR'], array[1]),
  ('volume', 'cubic m', array['L', 'kL', 'ML', 'cubic m', 'cubic ft', 'cubic yd', 'CF', 'CCF', 'HCF', 'MCF', 'MMCF',
      'gal (US)', '100 gal (US)', 'kgal (US)', 'Mgal (US)', 'gal (UK)', '100 gal (UK)', 'kgal (UK)', 'Mgal (UK)', 'bbl',
      'mbbl'],
    array[0.001, 1, 1000, 1, 0.028316846592, 0.764554857984, 0.028316846592, 2.8316846592, 2.8316846592, 28.316846592,
      28316.846592, 0.003785411784, 0.3785411784, 3.785411784, 3785.411784, 0.00454609, 0.454609, 4.54609, 4546.09,
      0.158987294928, 158.987294928]),
  ('mass', 'kg', array['g', 'kg', 'metric ton', 'tonne', 'lb', 'mlb', 'oz t', 'tons (US)', 'sh ton', 'long tn'],
    array[0.001, 1, 1000, 1000, 0.45359237, 453.59237, 0.0311034768, 907.18474, 907.18474, 1016.0469088]),
  ('length', 'km', array['km', 'm', 'cm', 'mm', 'nm', 'mi', 'yd', 'ft', 'in.'],
    array[1, 0.001, 0.00001, 0.000001, 0.000000000001, 1.609344, 0.0009144, 0.0003048, 0.0000254])
) as kind (dimension, standard_units, names, factors), unnest(names, factors) as t (units, factor);
--> statement-breakpoint
-- Readings of any year may come, and a partition of each of their months would take more locks than a server has. Months within
-- metersync.interval_months() have one each, made when the first reading comes; what lies before and after stands in these two.
-- No default partition: making a month would have to wait for everybody who reads it.
CREATE TABLE utility.intervals_before_2000 (LIKE utility.intervals INCLUDING ALL);
CREATE TABLE utility.intervals_from_2050 (LIKE utility.intervals INCLUDING ALL);
ALTER TABLE utility.intervals ATTACH PARTITION utility.intervals_before_2000 FOR VALUES FROM (MINVALUE) TO ('2000-01-01 00:00:00+00');
ALTER TABLE utility.intervals ATTACH PARTITION utility.intervals_from_2050 FOR VALUES FROM ('2050-01-01 00:00:00+00') TO (MAXVALUE);
--> statement-breakpoint
-- How many rows a look for one meter finds in a month. Counting what is there would say as many as a meter with readings has,
-- for each meter, and most have none: reading whole months would look cheaper than asking for the meters of a company. The
-- fraction stands for some 500, between the 744 hours and the 30 days that a month has, and grows with the table.
ALTER TABLE utility.intervals_before_2000 ALTER COLUMN meter_id SET (n_distinct = -0.002);
ALTER TABLE utility.intervals_from_2050 ALTER COLUMN meter_id SET (n_distinct = -0.002);
ALTER TABLE utility.intervals ALTER COLUMN meter_id SET (n_distinct_inherited = -0.002);
--> statement-breakpoint
DO $$
declare
  described record;
begin
  for described in
    select t.relname, c.comment_text, c.column_name
    from (values
      ('raw', 'The record exactly as the API returned it, less secret fields; NULL until it has been read.'),
      ('api_version', 'Last part of SERVICE_URL when raw was read, for example v2.2.'),
      ('first_synced_at', 'When metersync first wrote this row.'),
      ('synced_at', 'When the read began that brought raw.'),
      ('deleted_at', 'When metersync learnt that the service no longer has the record; NULL while it lives. Last values are kept.'),
      ('deleted_reason', 'event: a delete event said so; absent: a complete, stable listing no longer had it; listed: the service lists it among deleted ones; not_found: its own endpoint answered 404; document: its document is gone.')
    ) as c (column_name, comment_text)
    cross join (values ('companies'), ('sites'), ('connections'), ('documents'), ('usage_data'), ('meters')) as t (relname)
  loop
    execute format('comment on column utility.%I.%I is %L', described.relname, described.column_name, described.comment_text);
  end loop;
end
$$;
--> statement-breakpoint
COMMENT ON SCHEMA utility IS 'Current state of every resource, as the service sent it.';
COMMENT ON TABLE utility.companies IS 'Companies of the organization.';
COMMENT ON COLUMN utility.companies.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.companies.external_id IS 'Identifier chosen by the customer.';
COMMENT ON COLUMN utility.companies.public_id IS 'The service''s public identifier; webhook events tell it.';
COMMENT ON COLUMN utility.companies.name IS 'Name of the company.';
COMMENT ON TABLE utility.connection_sites IS 'Which sites a connection serves, through which accounts.';
COMMENT ON COLUMN utility.connection_sites.connection_id IS 'The connection.';
COMMENT ON COLUMN utility.connection_sites.site_id IS 'The site.';
COMMENT ON COLUMN utility.connection_sites.account_ids IS 'Accounts at the provider, as the service names them.';
COMMENT ON COLUMN utility.connection_sites.datasource_types IS 'Commodities, for example ELECTRICITY.';
COMMENT ON TABLE utility.connection_status_changes IS 'Every status change that an event told of.';
COMMENT ON COLUMN utility.connection_status_changes.connection_id IS 'The connection.';
COMMENT ON COLUMN utility.connection_status_changes.old_status IS 'Status before; NULL for the status at creation.';
COMMENT ON COLUMN utility.connection_status_changes.status IS 'Status after.';
COMMENT ON COLUMN utility.connection_status_changes.at IS 'updated of the connection in the event.';
COMMENT ON COLUMN utility.connection_status_changes.event_id IS 'The event that told of it; the smallest id where several did.';
COMMENT ON TABLE utility.connections IS 'Connections to utility providers.';
COMMENT ON COLUMN utility.connections.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.connections.company_id IS 'Company that the connection belongs to.';
COMMENT ON COLUMN utility.connections.external_id IS 'Identifier chosen by the customer.';
COMMENT ON COLUMN utility.connections.datasource IS 'Name of the utility provider.';
COMMENT ON COLUMN utility.connections.status IS 'Status, as the service names it: an open list (PENDING, CONNECTED, MFA_TOKEN_EXPIRED, ...).';
COMMENT ON COLUMN utility.connections.url IS 'Web address of the provider.';
COMMENT ON COLUMN utility.connections.created IS 'When the service created the record.';
COMMENT ON COLUMN utility.connections.updated IS 'When the service last changed the record: the newest that an event or a read told.';
COMMENT ON COLUMN utility.connections.raw_updated IS 'updated of the state in raw; older than updated while an event waits for the record to be read again.';
COMMENT ON COLUMN utility.connections.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
COMMENT ON TABLE utility.documents IS 'Utility bills.';
COMMENT ON COLUMN utility.documents.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.documents.company_id IS 'Company that the bill belongs to.';
COMMENT ON COLUMN utility.documents.site_id IS 'Site that an event or the record names.';
COMMENT ON COLUMN utility.documents.created IS 'When the service created the record.';
COMMENT ON COLUMN utility.documents.updated IS 'When the service last changed the record: the newest that an event or a read told.';
COMMENT ON COLUMN utility.documents.raw_updated IS 'updated of the state in raw; older than updated while an event waits for the record to be read again.';
COMMENT ON COLUMN utility.documents.usage_read_at IS 'When the last read of all its usage began: a usage row that was read before and is not known by then is gone.';
COMMENT ON COLUMN utility.documents.revised_document_id IS 'revisedDocumentId of raw: the bill that supersedes this one.';
COMMENT ON COLUMN utility.documents.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
COMMENT ON TABLE utility.intervals IS 'Interval readings, partitioned by month (UTC) of start_at from 2000 to 2049; earlier and later ones stand in a partition each.';
COMMENT ON COLUMN utility.intervals.meter_id IS 'Meter.';
COMMENT ON COLUMN utility.intervals.start_at IS 'Start of the interval.';
COMMENT ON COLUMN utility.intervals.granularity_seconds IS 'Length of the interval, in seconds.';
COMMENT ON COLUMN utility.intervals.usage_units IS 'Unit, as the service names it.';
COMMENT ON COLUMN utility.intervals.usage IS 'Amount, exact, in usage_units.';
COMMENT ON COLUMN utility.intervals.quality IS 'Quality, as the service names it: an open list.';
COMMENT ON COLUMN utility.intervals.updated IS 'When the service last changed the reading, where it says so.';
COMMENT ON COLUMN utility.intervals.synced_at IS 'When the read began that brought this row.';
COMMENT ON TABLE utility.meters IS 'Meters.';
COMMENT ON COLUMN utility.meters.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.meters.company_id IS 'Company in whose listing the meter stands.';
COMMENT ON COLUMN utility.meters.site_id IS 'Site of the meter.';
COMMENT ON COLUMN utility.meters.account_id IS 'Account at the provider.';
COMMENT ON COLUMN utility.meters.datasource_type IS 'Commodity, for example ELECTRICITY.';
COMMENT ON COLUMN utility.meters.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
COMMENT ON TABLE utility.sites IS 'Sites of companies.';
COMMENT ON COLUMN utility.sites.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.sites.company_id IS 'Company that the site belongs to.';
COMMENT ON COLUMN utility.sites.name IS 'Name of the site.';
COMMENT ON TABLE utility.usage_data IS 'Usage of one meter over one billing period, from one bill.';
COMMENT ON COLUMN utility.usage_data.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.usage_data.company_id IS 'Company that the usage belongs to.';
COMMENT ON COLUMN utility.usage_data.document_id IS 'Bill that the usage was read from.';
COMMENT ON COLUMN utility.usage_data.meter_id IS 'Meter.';
COMMENT ON COLUMN utility.usage_data.start_date IS 'First day, as the service sent it.';
COMMENT ON COLUMN utility.usage_data.end_date IS 'Last day, as the service sent it.';
COMMENT ON COLUMN utility.usage_data.usage IS 'Amount, exact, in usage_units.';
COMMENT ON COLUMN utility.usage_data.usage_units IS 'Unit, as the service names it.';
COMMENT ON COLUMN utility.usage_data.created IS 'When the service created the record.';
COMMENT ON COLUMN utility.usage_data.updated IS 'When the service last changed the record.';
COMMENT ON COLUMN utility.usage_data.is_estimated IS 'isEstimated of raw.';
COMMENT ON COLUMN utility.usage_data.exclusion IS 'exclusion of raw: the usage is subtracted in sums.';
COMMENT ON COLUMN utility.usage_data.net_metering_type IS 'netMeteringType of raw, for example EXPORT.';
COMMENT ON COLUMN utility.usage_data.billed_demand IS 'billedDemand of raw.';
COMMENT ON COLUMN utility.usage_data.digest IS 'SHA-256 of the text of the record in raw and of what else the row was made of: a record that still has it is not written again. For metersync alone.';
--> statement-breakpoint
COMMENT ON SCHEMA history IS 'Earlier states of the records of utility, one table a resource: each row is what utility said from valid_from until valid_to. The state of now is in utility alone.';
--> statement-breakpoint
COMMENT ON SCHEMA metersync IS 'The pipeline''s own state: the journal of events, runs, what was refused.';
COMMENT ON TABLE metersync.also_listed IS 'Records that the listing of a company shows though another company is their owner. They live as long as any listing shows them.';
COMMENT ON COLUMN metersync.also_listed.resource IS 'Kind of the record.';
COMMENT ON COLUMN metersync.also_listed.record_id IS 'Id of the record.';
COMMENT ON COLUMN metersync.also_listed.company_id IS 'The company whose listing shows it, and that is not its owner.';
COMMENT ON TABLE metersync.catch_ups IS 'Whether the catch-up workflow of each kind is awake.';
COMMENT ON COLUMN metersync.catch_ups.kind IS 'connections, documents or intervals.';
COMMENT ON COLUMN metersync.catch_ups.awake IS 'True while the workflow runs; who records an event wakes it when false.';
COMMENT ON TABLE metersync.data_checks IS 'Companies whose data was checked, one row for each kind of checks: while it is there, nothing is known to have changed since that they would see.';
COMMENT ON COLUMN metersync.data_checks.company_id IS 'The company.';
COMMENT ON COLUMN metersync.data_checks.run_with IS 'Which of ops.data_issue_checks were made: those that run with bills, connections or intervals.';
COMMENT ON COLUMN metersync.data_checks.seen_until IS 'Nothing that changed before was left out: the check began then, or it was found later that nothing had changed.';
COMMENT ON COLUMN metersync.data_checks.today IS 'The date that the check took for today.';
COMMENT ON COLUMN metersync.data_checks.checks_off IS 'Checks that were left out.';
COMMENT ON TABLE metersync.deletes IS 'Rows that a run found gone from the service: tombstoned, or kept until somebody decides.';
COMMENT ON COLUMN metersync.deletes.run_id IS 'The run.';
COMMENT ON COLUMN metersync.deletes.company_id IS 'Company of the row.';
COMMENT ON COLUMN metersync.deletes.resource IS 'Resource of the row.';
COMMENT ON COLUMN metersync.deletes.record_id IS 'Id of the row.';
COMMENT ON COLUMN metersync.deletes.state IS 'quarantined: more rows than the cap, kept until somebody decides; applied: tombstoned; rejected: kept; undone: revived.';
COMMENT ON COLUMN metersync.deletes.reason IS 'absent: no pass of a backfill, or look of an audit, showed it; listed: a reconcile saw it among deleted documents.';
COMMENT ON COLUMN metersync.deletes.updated IS 'The updated of the record where the service lists it as deleted.';
COMMENT ON COLUMN metersync.deletes.absent_since IS 'When the first of the reads began that did not see it, or saw it among deleted ones.';
COMMENT ON COLUMN metersync.deletes.noted_at IS 'When the run noted it.';
COMMENT ON COLUMN metersync.deletes.decided_at IS 'When somebody decided.';
COMMENT ON TABLE metersync.field_catalogue IS 'Every field that a record was ever seen to have, for each resource and version of the API. Analysts read ops.field_catalogue.';
COMMENT ON COLUMN metersync.field_catalogue.resource IS 'documents, usageData and so on; events/TYPE for the payloads of events.';
COMMENT ON COLUMN metersync.field_catalogue.api_version IS 'Version of the API that it was read from; webhooks for events.';
COMMENT ON COLUMN metersync.field_catalogue.path IS 'Where it stands: a JSON Pointer in which * is any element of an array, or any field of a map (~2 is an asterisk in a name). Empty for the record itself.';
COMMENT ON COLUMN metersync.field_catalogue.types IS 'Kinds of values it had, null aside: boolean, number, decimal (a number as text), timestamp, date, uuid, text, object, array.';
COMMENT ON COLUMN metersync.field_catalogue.records IS 'How many records had it, each time that they were read; about, as a killed process loses some seconds of counts.';
COMMENT ON COLUMN metersync.field_catalogue.first_seen_at IS 'When it was first seen.';
COMMENT ON COLUMN metersync.field_catalogue.last_seen_at IS 'When it was last seen.';
COMMENT ON COLUMN metersync.field_catalogue.example IS 'The first value that was seen, cut short; NULL for objects, arrays and what may be secret.';
COMMENT ON COLUMN metersync.field_catalogue.enum_values IS 'Its texts, while they are few and short; NULL when they are no enumeration.';
COMMENT ON COLUMN metersync.field_catalogue.collapsed IS 'Whether its own fields are not told apart, as they are too many, or keys that are data, or too deep: those of a map stand under its *.';
COMMENT ON TABLE metersync.interval_fetches IS 'Ranges of each meter''s readings that were fetched.';
COMMENT ON COLUMN metersync.interval_fetches.meter_id IS 'The meter.';
COMMENT ON COLUMN metersync.interval_fetches.fetched IS 'All ranges that were fetched, merged.';
COMMENT ON COLUMN metersync.interval_fetches.updated_at IS 'When the last one was added.';
COMMENT ON TABLE metersync.journal IS 'The log of events: every verified event once, by its id, as it came. What became of it is told by the view metersync.events.';
COMMENT ON COLUMN metersync.journal.id IS 'Message id of the delivery: the same on every attempt.';
COMMENT ON COLUMN metersync.journal.type IS 'Type of the event; told by its shape where the payload names none; unknown where neither tells.';
COMMENT ON COLUMN metersync.journal.kind IS 'connection, document, interval or ignored.';
COMMENT ON COLUMN metersync.journal.record_id IS 'Connection, document or meter that the event is about.';
COMMENT ON COLUMN metersync.journal.company_id IS 'Company that the payload names.';
COMMENT ON COLUMN metersync.journal.occurred_at IS 'updated of the record in the payload.';
COMMENT ON COLUMN metersync.journal.range_start IS 'Start of a synced interval range.';
COMMENT ON COLUMN metersync.journal.range_end IS 'End of a synced interval range.';
COMMENT ON COLUMN metersync.journal.received_at IS 'When the receiver had the request (its clock).';
COMMENT ON COLUMN metersync.journal.recorded_at IS 'When the event entered the journal (the warehouse''s clock).';
COMMENT ON COLUMN metersync.journal.payload IS 'The payload; NULL where Postgres cannot hold it: then body has its bytes.';
COMMENT ON COLUMN metersync.journal.body IS 'The exact bytes of a payload that jsonb cannot hold.';
COMMENT ON COLUMN metersync.journal.arrived_as IS 'What it was when it came: pending (its record had to be read), applied (nothing was left to read), ignored (unknown type), dead (it cannot be applied, see error), superseded (as an earlier version noted it).';
COMMENT ON COLUMN metersync.journal.error IS 'Why it was dead when it came.';
COMMENT ON COLUMN metersync.journal.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON COLUMN metersync.journal.interval_count IS 'Readings that the event said its range has.';
COMMENT ON COLUMN metersync.journal.workflow_id IS 'Temporal workflow that recorded the event.';
COMMENT ON COLUMN metersync.journal.workflow_run_id IS 'Its run.';
COMMENT ON COLUMN metersync.journal.payload_dropped_at IS 'When payload or body was dropped for its age: the id stays.';
COMMENT ON TABLE metersync.pages IS 'Manifest of a running pass; unlogged: after a crash of Postgres the pass is simply read again.';
COMMENT ON COLUMN metersync.pages.run_id IS 'The run.';
COMMENT ON COLUMN metersync.pages.company_id IS 'The company.';
COMMENT ON COLUMN metersync.pages.resource IS 'The resource.';
COMMENT ON COLUMN metersync.pages.pass IS 'Which pass over the listing.';
COMMENT ON COLUMN metersync.pages.asked IS 'Page asked for.';
COMMENT ON COLUMN metersync.pages.current_page IS 'Page that the service said it answered with.';
COMMENT ON COLUMN metersync.pages.total IS 'Total that the service said.';
COMMENT ON COLUMN metersync.pages.has_next IS 'Whether the service said that a page follows.';
COMMENT ON COLUMN metersync.pages.ids IS 'Ids on the page.';
COMMENT ON COLUMN metersync.pages.read_at IS 'When the read began.';
COMMENT ON TABLE metersync.parked IS 'Why nothing at all is asked of the service, for example as it refuses the API key; empty while all is well.';
COMMENT ON COLUMN metersync.parked.code IS 'Code of the failure, as docs/failures.md lists them.';
COMMENT ON COLUMN metersync.parked.message IS 'The failure in words.';
COMMENT ON COLUMN metersync.parked.since IS 'When it was first met.';
COMMENT ON COLUMN metersync.parked.attempts IS 'How often it was met since, or since the last metersync resume.';
COMMENT ON COLUMN metersync.parked.next_attempt_at IS 'Nothing is asked before this time.';
COMMENT ON TABLE metersync.rejected_records IS 'Records of the API that Postgres refused (NUL, impossible date, overflow); their neighbours were written.';
COMMENT ON COLUMN metersync.rejected_records.resource IS 'Resource.';
COMMENT ON COLUMN metersync.rejected_records.record_id IS 'Id of the record, or a hash of its text where it has none.';
COMMENT ON COLUMN metersync.rejected_records.company_id IS 'Company in whose listing it stood.';
COMMENT ON COLUMN metersync.rejected_records.error IS 'Postgres''s words.';
COMMENT ON COLUMN metersync.rejected_records.record IS 'The record''s text, with each \u0000 as the service sent it.';
COMMENT ON COLUMN metersync.rejected_records.rejected_at IS 'When.';
COMMENT ON TABLE metersync.run_companies IS 'Companies that were chosen for a run; a run of all has none.';
COMMENT ON COLUMN metersync.run_companies.run_id IS 'The run.';
COMMENT ON COLUMN metersync.run_companies.company_id IS 'The company.';
COMMENT ON COLUMN metersync.run_companies.refused IS 'Whether the service does not have it: it was not read.';
COMMENT ON TABLE metersync.runs IS 'Backfills: one row for the run, one for each company and resource in it.';
COMMENT ON COLUMN metersync.runs.run_id IS 'The run.';
COMMENT ON COLUMN metersync.runs.company_id IS 'NULL for the row of the run itself and for its list of companies.';
COMMENT ON COLUMN metersync.runs.resource IS 'NULL for the row of the run itself.';
COMMENT ON COLUMN metersync.runs.kind IS 'full: everything that the service has; reconcile: what was updated lately.';
COMMENT ON COLUMN metersync.runs.workflow_id IS 'Temporal workflow of the run, as temporal workflow show -w takes it; NULL for parts.';
COMMENT ON COLUMN metersync.runs.state IS 'running, complete, partial (some failed), suspect (fewer rows than said), failed.';
COMMENT ON COLUMN metersync.runs.started_at IS 'Start.';
COMMENT ON COLUMN metersync.runs.finished_at IS 'End.';
COMMENT ON COLUMN metersync.runs.pages IS 'Pages read.';
COMMENT ON COLUMN metersync.runs.passes IS 'Passes over the listing until one was stable.';
COMMENT ON COLUMN metersync.runs.total_said IS 'Total that the service said in the last pass.';
COMMENT ON COLUMN metersync.runs.distinct_ids IS 'Distinct ids seen in the last pass.';
COMMENT ON COLUMN metersync.runs.rows_inserted IS 'Rows that were new.';
COMMENT ON COLUMN metersync.runs.rows_changed IS 'Rows that were changed.';
COMMENT ON COLUMN metersync.runs.rows_unchanged IS 'Rows that already were as the service has them.';
COMMENT ON COLUMN metersync.runs.rows_tombstoned IS 'Rows that a stable pass no longer saw.';
COMMENT ON COLUMN metersync.runs.rows_rejected IS 'Records that Postgres refused, kept in rejected_records.';
COMMENT ON COLUMN metersync.runs.rows_missed IS 'Rows that the run had to change though an event should have told of it.';
COMMENT ON COLUMN metersync.runs.drift IS 'Pages that moved while they were read, over all passes.';
COMMENT ON COLUMN metersync.runs.requests IS 'Requests that were sent to the service.';
COMMENT ON COLUMN metersync.runs.error IS 'What went wrong.';
COMMENT ON COLUMN metersync.runs.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON TABLE metersync.service_gate IS 'The gate of the service: until when all workers wait.';
COMMENT ON COLUMN metersync.service_gate.one IS 'Always true: there is one row.';
COMMENT ON COLUMN metersync.service_gate.closed_until IS 'Nobody sends a request before this time.';
COMMENT ON COLUMN metersync.service_gate.updated_at IS 'When a worker last changed it.';
COMMENT ON TABLE metersync.service_workers IS 'Workers that share the one limit of requests to the service.';
COMMENT ON COLUMN metersync.service_workers.worker_id IS 'A worker process.';
COMMENT ON COLUMN metersync.service_workers.seen_at IS 'When it last said that it lives.';
COMMENT ON COLUMN metersync.service_workers.held IS 'Requests at once that are its part of the limit, or that it still has in flight.';
COMMENT ON TABLE metersync.settlements IS 'How events were settled: a row for each time that a record was read for them, or that they were given up.';
COMMENT ON COLUMN metersync.settlements.kind IS 'connection, document or interval.';
COMMENT ON COLUMN metersync.settlements.record_id IS 'As in stale_records.';
COMMENT ON COLUMN metersync.settlements.owner IS 'As in stale_records.';
COMMENT ON COLUMN metersync.settlements.since IS 'When the first of the events that waited was recorded.';
COMMENT ON COLUMN metersync.settlements.read_at IS 'When the read began: it settles events that were recorded from since until then.';
COMMENT ON COLUMN metersync.settlements.shown IS 'The state that the read showed: it settles events that told of no newer one.';
COMMENT ON COLUMN metersync.settlements.settled_at IS 'When that was known.';
COMMENT ON COLUMN metersync.settlements.outcome IS 'applied: their state, or a newer one, is in the warehouse; superseded: a newer state was already known, or the record is gone; missing: the service never showed it; dead: Postgres cannot hold it.';
COMMENT ON COLUMN metersync.settlements.updates_only IS 'Whether a deletion that waits for its company is not settled by it.';
COMMENT ON COLUMN metersync.settlements.error IS 'Why they are dead or missing.';
COMMENT ON COLUMN metersync.settlements.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON COLUMN metersync.settlements.attempts IS 'How often the record was looked at in vain before.';
COMMENT ON COLUMN metersync.settlements.intervals_told IS 'Readings that the event said its range has.';
COMMENT ON COLUMN metersync.settlements.intervals_found IS 'Readings that the warehouse had in the range when it was last fetched.';
COMMENT ON TABLE metersync.stale_records IS 'What has to be read again: a row for each record, and each range of readings, that events wait for.';
COMMENT ON COLUMN metersync.stale_records.key IS 'kind and record_id: one record.';
COMMENT ON COLUMN metersync.stale_records.queue IS 'kind and owner: what one catch-up reads.';
COMMENT ON COLUMN metersync.stale_records.kind IS 'connection, document or interval.';
COMMENT ON COLUMN metersync.stale_records.record_id IS 'Connection or document; of an interval the id of its event.';
COMMENT ON COLUMN metersync.stale_records.owner IS 'Company whose listings show the record; of an interval the meter.';
COMMENT ON COLUMN metersync.stale_records.events IS 'Events that wait for it.';
COMMENT ON COLUMN metersync.stale_records.since IS 'When the first of them was recorded.';
COMMENT ON COLUMN metersync.stale_records.told_at IS 'When the last of them was recorded: a read that began later settles them all.';
COMMENT ON COLUMN metersync.stale_records.wanted IS 'The newest state that they tell of.';
COMMENT ON COLUMN metersync.stale_records.due_at IS 'Not read again before this time.';
COMMENT ON COLUMN metersync.stale_records.attempts IS 'How often it was looked at in vain for the reason in error_code.';
COMMENT ON COLUMN metersync.stale_records.tried_since IS 'When the first of these attempts began: what was recorded later was not looked for as often.';
COMMENT ON COLUMN metersync.stale_records.error IS 'Why it still waits.';
COMMENT ON COLUMN metersync.stale_records.error_code IS 'Code of the failure in error, as docs/failures.md lists them.';
COMMENT ON TABLE metersync.typed_columns IS 'Columns of the typed views: a name, once given, stays with its field.';
COMMENT ON COLUMN metersync.typed_columns.view_name IS 'The view.';
COMMENT ON COLUMN metersync.typed_columns.position IS 'Order in which the columns came.';
COMMENT ON COLUMN metersync.typed_columns.name IS 'Name of the column.';
COMMENT ON COLUMN metersync.typed_columns.path IS 'The field, as in ops.field_catalogue.';
COMMENT ON COLUMN metersync.typed_columns.type IS 'Type that holds every value that was seen.';
COMMENT ON TABLE metersync.typed_views IS 'The typed views of schema fields, made from the field catalogue.';
COMMENT ON COLUMN metersync.typed_views.name IS 'Name of the view.';
COMMENT ON COLUMN metersync.typed_views.resource IS 'Resource whose records it shows.';
COMMENT ON COLUMN metersync.typed_views.path IS 'What of them it shows, as in ops.field_catalogue; empty: the records themselves.';
COMMENT ON COLUMN metersync.typed_views.definition IS 'Digest of what it was made by.';
COMMENT ON COLUMN metersync.typed_views.made_at IS 'When it was last made.';
--> statement-breakpoint
COMMENT ON SCHEMA ops IS 'What analysts may see of the pipeline, and what you tell it: overrides, factors, issues of the data.';
COMMENT ON TABLE ops.company_overrides IS 'The same for every site of a company that has none of its own; yours to fill.';
COMMENT ON COLUMN ops.company_overrides.company_id IS 'Company.';
COMMENT ON COLUMN ops.company_overrides.time_zone IS 'IANA name; NULL: UTC.';
COMMENT ON COLUMN ops.company_overrides.emission_region IS 'Region by which emission factors are looked up.';
COMMENT ON TABLE ops.contract_changes IS 'What the service was first seen to send: a resource, a field, a type of a field, a value of an enumeration.';
COMMENT ON COLUMN ops.contract_changes.id IS 'Number of the row.';
COMMENT ON COLUMN ops.contract_changes.seen_at IS 'When it was first seen.';
COMMENT ON COLUMN ops.contract_changes.resource IS 'documents, usageData and so on; events/TYPE for the payloads of events.';
COMMENT ON COLUMN ops.contract_changes.api_version IS 'Version of the API; webhooks for events.';
COMMENT ON COLUMN ops.contract_changes.path IS 'The field, as in ops.field_catalogue.';
COMMENT ON COLUMN ops.contract_changes.change IS 'resource, path, type or value.';
COMMENT ON COLUMN ops.contract_changes.value IS 'The type or the value; of a path the types it came with.';
COMMENT ON COLUMN ops.contract_changes.is_baseline IS 'Whether it was seen before a backfill had ended that began to read the resource: what came later is a change of the service''s.';
COMMENT ON TABLE ops.data_issues IS 'What the checks of ops.refresh_data_issues() found: one row an issue, open while closed_at is NULL.';
COMMENT ON COLUMN ops.data_issues.id IS 'Identifier.';
COMMENT ON COLUMN ops.data_issues.check_name IS 'Check, as ops.data_issue_checks lists them.';
COMMENT ON COLUMN ops.data_issues.severity IS 'error: numbers are wrong; warning: look at it; info: good to know.';
COMMENT ON COLUMN ops.data_issues.company_id IS 'Company.';
COMMENT ON COLUMN ops.data_issues.entity_type IS 'document, usage, meter, connection or site.';
COMMENT ON COLUMN ops.data_issues.entity_id IS 'Its id.';
COMMENT ON COLUMN ops.data_issues.subject IS 'What of it, where one can have several issues of a kind: a period or another id.';
COMMENT ON COLUMN ops.data_issues.evidence IS 'The figures that show it.';
COMMENT ON COLUMN ops.data_issues.opened_at IS 'When a check first found it.';
COMMENT ON COLUMN ops.data_issues.last_seen_at IS 'When a check last found it.';
COMMENT ON COLUMN ops.data_issues.closed_at IS 'When a check no longer found it, or its check was left out; NULL while it is open.';
COMMENT ON COLUMN ops.data_issues.closed_reason IS 'evidence_gone: what showed it is no longer there; check_off: its check is in CHECKS_OFF; check_removed: there is no such check any more. NULL while it is open, and where it was closed before this was noted.';
COMMENT ON COLUMN ops.data_issues.acknowledged_at IS 'When somebody said to know of it, by metersync checks acknowledge; it stays open.';
COMMENT ON COLUMN ops.data_issues.acknowledged_note IS 'What they said to it.';
COMMENT ON TABLE ops.emission_factors IS 'Emission factors that you supply: there are none from the start, and without one emissions are NULL.';
COMMENT ON COLUMN ops.emission_factors.id IS 'Names the factor in analytics.emissions_monthly.';
COMMENT ON COLUMN ops.emission_factors.region IS 'Emission region of sites (ops.site_overrides, ops.company_overrides); empty: every site.';
COMMENT ON COLUMN ops.emission_factors.datasource_type IS 'Commodity.';
COMMENT ON COLUMN ops.emission_factors.scope IS 'Scope of the greenhouse gas protocol: 1, 2 or 3.';
COMMENT ON COLUMN ops.emission_factors.method IS 'location or market for scope 2; else empty.';
COMMENT ON COLUMN ops.emission_factors.valid_from IS 'First day.';
COMMENT ON COLUMN ops.emission_factors.valid_to IS 'Day after the last.';
COMMENT ON COLUMN ops.emission_factors.units IS 'Standard unit of the usage, for example kWh.';
COMMENT ON COLUMN ops.emission_factors.kg_co2e_per_unit IS 'Kilograms of CO2 equivalent for each unit.';
COMMENT ON COLUMN ops.emission_factors.source IS 'Where the factor is from.';
COMMENT ON COLUMN ops.emission_factors.version IS 'Set of factors that it belongs to: several can stand side by side.';
COMMENT ON COLUMN ops.emission_factors.created_at IS 'When the row was added.';
COMMENT ON TABLE ops.site_overrides IS 'What the service does not tell of a site; yours to fill.';
COMMENT ON COLUMN ops.site_overrides.site_id IS 'Site.';
COMMENT ON COLUMN ops.site_overrides.time_zone IS 'IANA name, for example America/New_York; NULL: that of the company.';
COMMENT ON COLUMN ops.site_overrides.emission_region IS 'Region by which emission factors are looked up.';
COMMENT ON COLUMN ops.site_overrides.floor_area IS 'Floor area, in floor_area_units.';
COMMENT ON COLUMN ops.site_overrides.floor_area_units IS 'For example m2 or ft2.';
COMMENT ON TABLE ops.unit_factors IS 'How units become the standard unit of their kind: amount × factor. Add a row with a datasource_type for what depends on the commodity, such as the heat content of gas (CCF of GAS into kWh).';
COMMENT ON COLUMN ops.unit_factors.units IS 'Unit, as the service names it.';
COMMENT ON COLUMN ops.unit_factors.datasource_type IS 'Commodity that the row is for; empty: every one without a row of its own.';
COMMENT ON COLUMN ops.unit_factors.dimension IS 'energy, power, apparent power, reactive power, volume, mass or length.';
COMMENT ON COLUMN ops.unit_factors.standard_units IS 'Unit that amounts become.';
COMMENT ON COLUMN ops.unit_factors.factor IS 'Standard units in one unit.';
COMMENT ON COLUMN ops.unit_factors.source IS 'Where the factor is from.';
--> statement-breakpoint
DO $$
declare
  kept record;
begin
  for kept in
    select h.relname, a.attname, a.attnum, u.oid as origin
    from pg_class h join pg_namespace n on n.oid = h.relnamespace and n.nspname = 'history'
      join pg_attribute a on a.attrelid = h.oid and a.attnum > 0
      join pg_class u on u.relname = h.relname and u.relnamespace = 'utility'::regnamespace
    where h.relkind = 'r'
  loop
    if kept.attname = 'id' then
      execute format('comment on table history.%I is %L', kept.relname, format('Earlier states of utility.%s.', kept.relname));
    end if;
    execute format('comment on column history.%I.%I is %L', kept.relname, kept.attname, case kept.attname
      when 'valid_from' then 'When the warehouse began to say this, by its own clock.'
      when 'valid_to' then 'When it said something else: the state held until then, this moment not included.'
      when 'ended_by_kind' then 'event: an event told of the change; run: a backfill found it; NULL: neither is known.'
      when 'ended_by' then 'Id of that event (metersync.events) or run (ops.runs).'
      else coalesce((select col_description(kept.origin, o.attnum) from pg_attribute o
        where o.attrelid = kept.origin and o.attname = kept.attname), 'As in utility.') end);
  end loop;
end
$$;
