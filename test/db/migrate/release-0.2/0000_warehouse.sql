create schema "utility";

--> statement-breakpoint
create schema "history";

--> statement-breakpoint
create schema "metersync";

--> statement-breakpoint
create schema "ops";

--> statement-breakpoint
-- A time of the service: ISO 8601, or Unix seconds. What is finer than a microsecond is cut off and
-- not rounded: an event may have a time more precise than its record's, which must not make that
-- count as older.
create function metersync.read_time(value text)
returns timestamptz
language sql stable parallel safe
as $$
  select
    case
      when value ~ '^\d{4}-\d\d-\d\d' then case
        when length(value) > 26 then regexp_replace(value, '([.,]\d{6})\d+', '\1')::timestamptz
        else value::timestamptz
      end
      when value ~ '^\d{9,11}$' then to_timestamp(value::bigint)
      else ('not a time: ' || nullif(value, ''))::timestamptz
    end
$$;

--> statement-breakpoint
-- What should be an array and isn't counts as empty: one odd record must not make its page
-- unreadable.
create function metersync.elements(value jsonb)
returns jsonb
language sql immutable parallel safe
as $$
  select case when jsonb_typeof(value) = 'array' then value else '[]'::jsonb end
$$;

--> statement-breakpoint
-- A reference is an object with an id, or the id itself.
create function metersync.id_of(value jsonb)
returns text
language sql immutable parallel safe
as $$
  select
    case jsonb_typeof(value)
      when 'object' then value ->> 'id'
      when 'string' then value #>> '{}'
    end
$$;

--> statement-breakpoint
create function metersync.text_array(value jsonb)
returns text[]
language sql immutable parallel safe
as $$
  select coalesce(array_agg(item order by place), '{}')
  from jsonb_array_elements_text(metersync.elements(value)) with ordinality as t(item, place)
$$;

--> statement-breakpoint
-- However a UUID is spelled: in capitals, without hyphens, in braces.
create function metersync.uuid_of(value text)
returns uuid
language sql immutable parallel safe
as $$
  select
    case
      when value ~ '^(\{[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}|[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7})$'
        then value::uuid
    end
$$;

--> statement-breakpoint
create function metersync.boolean_of(value text)
returns boolean
language sql immutable parallel safe
as $$
  select
    case lower(value)
      when 'true' then true
      when 'false' then false
    end
$$;

--> statement-breakpoint
create function metersync.number_of(value text)
returns numeric
language sql immutable parallel safe
as $$
  select
    case
      when length(value) <= 200
        and value ~ '^-?(\d+\.?\d*|\.\d+)([eE][-+]?\d\d?)?$' then value::numeric
    end
$$;

--> statement-breakpoint
-- As before, in a third of the time: without a cast that depends on the session's DateStyle it is
-- made part of the statement.
create function metersync.date_of(value text)
returns date
language sql immutable parallel safe
as $$
  select
    case
      when value ~ '^[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)([T ]|$)'
        and substr(value, 1, 4) <> '0000'
        or value ~ '^([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29([T ]|$)' then make_date(substr(value, 1, 4)::int, substr(value, 6, 2)::int, substr(value, 9, 2)::int)
    end
$$;

--> statement-breakpoint
-- Postgres's own words (time zone "..." not recognized) say more than a violated constraint would.
create function metersync.is_time_zone(name text)
returns boolean
language sql immutable parallel safe
as $$
  select
    name is null
    or timezone(name, timestamptz '2000-01-01 00:00Z') is not null
$$;

--> statement-breakpoint
-- Texts of both, the first as it is when it has all of the second's.
create function metersync.union_of(known text[], more text[])
returns text[]
language sql immutable parallel safe
as $$
  select
    case
      when more <@ known then known
      else known || array(
        select unnest(more)
        except
        select unnest(known)
        order by 1
      )
    end
$$;

--> statement-breakpoint
-- Texts that a field has: NULL once they are more than an enumeration has.
create function metersync.enum_union(known text[], more text[])
returns text[]
language sql immutable parallel safe
as $$
  select
    case
      when known is not null
        and more is not null
        and cardinality(metersync.union_of(known, more)) <= 20 then metersync.union_of(known, more)
    end
$$;

--> statement-breakpoint
-- Readings of any year may come, and a partition of each of their months would take more locks than
-- a server has. Months within this span have one each; what lies before and after it stands in two
-- partitions of their own.
create function metersync.interval_months()
returns tstzrange
language sql immutable parallel safe
as $$
  select '[2000-01-01 00:00:00+00,2050-01-01 00:00:00+00)'::tstzrange
$$;

--> statement-breakpoint
-- An id that may be any text: of a UUID its one spelling.
create function metersync.canonical_id(value text)
returns text
language sql immutable parallel safe
as $$
  select coalesce(metersync.uuid_of(value)::text, value)
$$;

--> statement-breakpoint
create table "utility"."companies" (
  "id" uuid primary key not null,
  "external_id" text,
  "public_id" text,
  "name" text,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text
);

--> statement-breakpoint
create table "utility"."connection_sites" (
  "connection_id" uuid not null,
  "site_id" uuid not null,
  "account_ids" text[] not null,
  "datasource_types" text[] not null,
  constraint "connection_sites_connection_id_site_id_pk" primary key ("connection_id", "site_id")
);

--> statement-breakpoint
create table "utility"."connection_status_changes" (
  "connection_id" uuid not null,
  "old_status" text,
  "status" text not null,
  "at" timestamp(6) with time zone not null,
  "event_id" text not null,
  constraint "connection_status_changes_connection_id_at_status_pk" primary key (
    "connection_id",
    "at",
    "status"
  )
);

--> statement-breakpoint
create table "utility"."connections" (
  "id" uuid primary key not null,
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
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "digest" "bytea",
  constraint "connections_times_are_finite" check (isfinite(created) and isfinite(updated))
);

--> statement-breakpoint
create table "utility"."documents" (
  "id" uuid primary key not null,
  "company_id" uuid,
  "site_id" uuid,
  "created" timestamp(6) with time zone,
  "updated" timestamp(6) with time zone,
  "raw_updated" timestamp(6) with time zone,
  "usage_read_at" timestamp(6) with time zone,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "revised_document_id" uuid GENERATED ALWAYS as (
    metersync.uuid_of(raw ->> 'revisedDocumentId')
  ) STORED,
  "digest" "bytea",
  constraint "documents_times_are_finite" check (isfinite(created) and isfinite(updated))
);

--> statement-breakpoint
-- By hand: Drizzle knows no partitions.
create table "utility"."intervals" (
  "meter_id" text not null,
  "start_at" timestamp(6) with time zone not null,
  "granularity_seconds" integer not null,
  "usage_units" text not null,
  "usage" numeric,
  "quality" text,
  "updated" timestamp(6) with time zone,
  "synced_at" timestamp(6) with time zone not null,
  constraint "intervals_meter_id_start_at_granularity_seconds_usage_units_pk" primary key (
    "meter_id",
    "start_at",
    "granularity_seconds",
    "usage_units"
  ),
  constraint "intervals_usage_is_finite" check (usage > '-Infinity' and usage < 'Infinity'),
  constraint "intervals_granularity_is_positive" check (granularity_seconds > 0)
)
partition by RANGE("start_at");

--> statement-breakpoint
create table "utility"."meters" (
  "id" text primary key not null,
  "company_id" uuid,
  "site_id" uuid,
  "account_id" text,
  "datasource_type" text,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "digest" "bytea"
);

--> statement-breakpoint
create table "utility"."sites" (
  "id" uuid primary key not null,
  "company_id" uuid,
  "name" text,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text
);

--> statement-breakpoint
create table "utility"."usage_data" (
  "id" uuid primary key not null,
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
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "is_estimated" boolean GENERATED ALWAYS as (metersync.boolean_of(raw ->> 'isEstimated')) STORED,
  "exclusion" boolean GENERATED ALWAYS as (metersync.boolean_of(raw ->> 'exclusion')) STORED,
  "net_metering_type" text GENERATED ALWAYS as (raw ->> 'netMeteringType') STORED,
  "billed_demand" numeric GENERATED ALWAYS as (
    metersync.number_of(raw ->> 'billedDemand')
  ) STORED,
  "digest" "bytea",
  constraint "usage_data_usage_is_finite" check (usage > '-Infinity' and usage < 'Infinity')
);

--> statement-breakpoint
create table "metersync"."also_listed" (
  "resource" text not null,
  "record_id" text not null,
  "company_id" uuid not null,
  constraint "also_listed_resource_record_id_company_id_pk" primary key (
    "resource",
    "record_id",
    "company_id"
  )
);

--> statement-breakpoint
create table "metersync"."alerts" (
  "id" uuid primary key default gen_random_uuid() not null,
  "name" text not null,
  "key" text not null,
  "detail" text not null,
  "pending_since" timestamp(6) with time zone not null,
  "opened_at" timestamp(6) with time zone,
  "reminded_at" timestamp(6) with time zone,
  "notified_at" timestamp(6) with time zone,
  "error" text,
  "closed_at" timestamp(6) with time zone,
  constraint "alerts_open_before_they_close" check (closed_at is null or opened_at is not null)
);

--> statement-breakpoint
create table "metersync"."heartbeat" (
  "one" boolean primary key default true not null,
  "at" timestamp(6) with time zone not null,
  constraint "heartbeat_has_one_row" check (one)
);

--> statement-breakpoint
create table "metersync"."notifications" (
  "message_id" uuid not null,
  "target" text not null,
  "message" jsonb not null,
  "alert_ids" uuid[] not null,
  "made_at" timestamp(6) with time zone not null,
  "attempts" integer default 0 not null,
  "sent_at" timestamp(6) with time zone,
  "error" text,
  constraint "notifications_message_id_target_pk" primary key ("message_id", "target")
);

--> statement-breakpoint
create table "metersync"."catch_ups" ("kind" text primary key not null, "awake" boolean default false not null);

--> statement-breakpoint
create table "metersync"."company_changes" (
  "company_id" uuid,
  "changed_at" timestamp(6) with time zone default clock_timestamp() not null
);

--> statement-breakpoint
create table "metersync"."company_months" (
  "company_id" uuid primary key not null,
  "made_at" timestamp(6) with time zone not null,
  "valid_from" date not null,
  "valid_until" date not null
);

--> statement-breakpoint
create table "metersync"."monthly_cost" (
  "company_id" uuid not null,
  "site_id" uuid,
  "meter_id" text,
  "datasource_type" text,
  "currency" text,
  "month" date,
  "cost" numeric,
  "days_in_month" integer,
  "days_covered" integer,
  "coverage" numeric,
  "days_overlapped" integer,
  "bills" integer,
  "bill_ids" uuid[]
);

--> statement-breakpoint
create table "metersync"."monthly_usage" (
  "company_id" uuid not null,
  "site_id" uuid,
  "meter_id" text,
  "datasource_type" text,
  "month" date,
  "units" text,
  "billed_usage" numeric,
  "usage" numeric,
  "extrapolated_usage" numeric,
  "original_usage" numeric,
  "original_units" text,
  "generated_usage" numeric,
  "peak_demand" numeric,
  "days_in_month" integer,
  "days_covered" integer,
  "coverage" numeric,
  "days_overlapped" integer,
  "estimated_days" integer,
  "is_complete" boolean,
  "bills" integer,
  "bill_ids" uuid[],
  "peak_demand_units" text,
  "unmetered_source" text
);

--> statement-breakpoint
create table "metersync"."monthly_usage_by_site" (
  "company_id" uuid not null,
  "site_id" uuid,
  "datasource_type" text,
  "month" date,
  "units" text,
  "billed_usage" numeric,
  "usage" numeric,
  "generated_usage" numeric,
  "peak_demand" numeric,
  "meters" integer,
  "meters_complete" integer,
  "coverage" numeric,
  "days_overlapped" integer,
  "estimated_days" integer,
  "is_complete" boolean,
  "peak_demand_units" text
);

--> statement-breakpoint
create table "metersync"."monthly_usage_by_company" (
  "company_id" uuid not null,
  "datasource_type" text,
  "month" date,
  "units" text,
  "billed_usage" numeric,
  "usage" numeric,
  "generated_usage" numeric,
  "peak_demand" numeric,
  "sites" integer,
  "meters" integer,
  "meters_complete" integer,
  "coverage" numeric,
  "days_overlapped" integer,
  "estimated_days" integer,
  "is_complete" boolean,
  "peak_demand_units" text
);

--> statement-breakpoint
create table "metersync"."monthly_cost_by_site" (
  "company_id" uuid not null,
  "site_id" uuid,
  "currency" text,
  "month" date,
  "cost" numeric,
  "meters" integer,
  "coverage" numeric
);

--> statement-breakpoint
create table "metersync"."monthly_cost_by_company" (
  "company_id" uuid not null,
  "currency" text,
  "month" date,
  "cost" numeric,
  "sites" integer,
  "meters" integer,
  "coverage" numeric
);

--> statement-breakpoint
create table "metersync"."monthly_by_site" (
  "company_id" uuid not null,
  "site_id" uuid,
  "commodity" text,
  "month" date,
  "usage" numeric,
  "units" text,
  "cost" numeric,
  "currency" text,
  "coverage" numeric,
  "is_complete" boolean
);

--> statement-breakpoint
create table "metersync"."data_checks" (
  "company_id" uuid not null,
  "run_with" text not null,
  "seen_until" timestamp(6) with time zone not null,
  "today" date not null,
  "checks_off" text[] not null,
  constraint "data_checks_company_id_run_with_pk" primary key ("company_id", "run_with")
);

--> statement-breakpoint
create table "metersync"."deletes" (
  "run_id" uuid not null,
  "company_id" uuid,
  "resource" text not null,
  "record_id" text not null,
  "state" text not null,
  "reason" text default 'absent' not null,
  "updated" timestamp(6) with time zone,
  "absent_since" timestamp(6) with time zone not null,
  "noted_at" timestamp(6) with time zone default now() not null,
  "decided_at" timestamp(6) with time zone,
  constraint "deletes_run_id_resource_record_id_pk" primary key (
    "run_id",
    "resource",
    "record_id"
  ),
  constraint "deletes_state" check (state in ('quarantined', 'applied', 'rejected', 'undone')),
  constraint "deletes_reason" check (reason in ('absent', 'listed'))
);

--> statement-breakpoint
create table "metersync"."field_catalogue" (
  "resource" text not null,
  "api_version" text not null,
  "path" text not null,
  "types" text[] not null,
  "records" bigint not null,
  "first_seen_at" timestamp(6) with time zone default clock_timestamp() not null,
  "last_seen_at" timestamp(6) with time zone default clock_timestamp() not null,
  "example" text,
  "enum_values" text[],
  "collapsed" boolean default false not null,
  constraint "field_catalogue_resource_api_version_path_pk" primary key (
    "resource",
    "api_version",
    "path"
  )
);

--> statement-breakpoint
create table "metersync"."interval_fetches" (
  "meter_id" text primary key not null,
  "fetched" "tstzmultirange" not null,
  "updated_at" timestamp(6) with time zone default now() not null
);

--> statement-breakpoint
create table "metersync"."journal" (
  "id" text primary key not null,
  "type" text not null,
  "kind" text not null,
  "record_id" text,
  "company_id" uuid,
  "occurred_at" timestamp(6) with time zone,
  "range_start" timestamp(6) with time zone,
  "range_end" timestamp(6) with time zone,
  "received_at" timestamp(6) with time zone not null,
  "recorded_at" timestamp(6) with time zone default clock_timestamp() not null,
  "payload" jsonb,
  "body" "bytea",
  "arrived_as" text not null,
  "error" text,
  "error_code" text,
  "interval_count" bigint,
  "workflow_id" text,
  "workflow_run_id" text,
  "payload_dropped_at" timestamp(6) with time zone,
  constraint "journal_arrived_as" check (arrived_as in ('pending', 'applied', 'ignored', 'dead')),
  constraint "journal_ranges_have_a_length" check (range_end >= range_start),
  constraint "journal_dead_say_why" check (arrived_as <> 'dead' or error is not null),
  constraint "journal_keeps_bytes" check (
    payload is not null
    or body is not null
    or payload_dropped_at is not null
  )
);

--> statement-breakpoint
create table "metersync"."operations" (
  "id" bigint primary key generated always as identity (
    sequence name "metersync"."operations_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START
    with
      1 CACHE 1
  ),
  "at" timestamp(6) with time zone default clock_timestamp() not null,
  "actor" text not null,
  "role" text not null,
  "source" text not null,
  "action" text not null,
  "target" jsonb not null,
  "outcome" text,
  "finished_at" timestamp(6) with time zone,
  "detail" text,
  constraint "operations_role" check (role in ('viewer', 'operator')),
  constraint "operations_source" check (source in ('console', 'command')),
  constraint "operations_outcome" check (outcome in ('done', 'failed', 'refused')),
  constraint "operations_end" check ((outcome is null) = (finished_at is null))
);

--> statement-breakpoint
-- By hand: what a crash takes is read again.
create unlogged table "metersync"."pages" (
  "run_id" uuid not null,
  "company_id" uuid not null,
  "resource" text not null,
  "pass" integer not null,
  "asked" integer not null,
  "current_page" integer not null,
  "total" bigint,
  "has_next" boolean not null,
  "ids" text[] not null,
  "read_at" timestamp(6) with time zone not null,
  constraint "pages_run_id_company_id_resource_pass_asked_pk" primary key (
    "run_id",
    "company_id",
    "resource",
    "pass",
    "asked"
  )
);

--> statement-breakpoint
create table "metersync"."parked" (
  "code" text primary key not null,
  "message" text not null,
  "since" timestamp(6) with time zone default clock_timestamp() not null,
  "attempts" integer not null,
  "next_attempt_at" timestamp(6) with time zone not null
);

--> statement-breakpoint
create table "metersync"."rejected_records" (
  "resource" text not null,
  "record_id" text not null,
  "company_id" uuid,
  "error" text not null,
  "record" text not null,
  "rejected_at" timestamp(6) with time zone default now() not null,
  constraint "rejected_records_resource_record_id_pk" primary key ("resource", "record_id")
);

--> statement-breakpoint
create table "metersync"."run_companies" (
  "run_id" uuid not null,
  "company_id" uuid not null,
  "refused" boolean default false not null,
  constraint "run_companies_run_id_company_id_pk" primary key ("run_id", "company_id")
);

--> statement-breakpoint
create table "metersync"."runs" (
  "run_id" uuid not null,
  "company_id" uuid,
  "resource" text,
  "kind" text default 'full' not null,
  "workflow_id" text,
  "state" text not null,
  "started_at" timestamp(6) with time zone default now() not null,
  "progress_at" timestamp(6) with time zone,
  "finished_at" timestamp(6) with time zone,
  "pages" integer default 0 not null,
  "passes" integer default 0 not null,
  "total_said" bigint,
  "distinct_ids" bigint,
  "rows_inserted" bigint default 0 not null,
  "rows_changed" bigint default 0 not null,
  "rows_unchanged" bigint default 0 not null,
  "rows_tombstoned" bigint default 0 not null,
  "rows_rejected" bigint default 0 not null,
  "rows_missed" bigint default 0 not null,
  "drift" integer default 0 not null,
  "requests" integer default 0 not null,
  "error" text,
  "error_code" text,
  constraint "runs_key" unique NULLS not distinct ("run_id", "company_id", "resource"),
  constraint "runs_kind" check (kind in ('full', 'reconcile')),
  constraint "runs_state" check (state in ('running', 'complete', 'partial', 'suspect', 'failed'))
);

--> statement-breakpoint
create table "metersync"."service_gate" (
  "one" boolean primary key default true not null,
  "closed_until" timestamp(6) with time zone,
  "updated_at" timestamp(6) with time zone default now() not null,
  constraint "service_gate_has_one_row" check (one)
);

--> statement-breakpoint
create table "metersync"."service_workers" (
  "worker_id" uuid primary key not null,
  "seen_at" timestamp(6) with time zone default now() not null,
  "held" integer default 0 not null
);

--> statement-breakpoint
create table "metersync"."settlements" (
  "kind" text not null,
  "record_id" text not null,
  "owner" text not null,
  "since" timestamp(6) with time zone not null,
  "read_at" timestamp(6) with time zone not null,
  "shown" timestamp(6) with time zone not null,
  "settled_at" timestamp(6) with time zone default clock_timestamp() not null,
  "outcome" text not null,
  "updates_only" boolean default false not null,
  "error" text,
  "error_code" text,
  "attempts" integer default 0 not null,
  "intervals_reported" bigint,
  "intervals_found" bigint,
  constraint "settlements_outcome" check (outcome in ('applied', 'superseded', 'dead', 'missing'))
);

--> statement-breakpoint
create table "metersync"."stale_records" (
  "key" text primary key GENERATED ALWAYS as (kind || '/' || record_id) STORED not null,
  "queue" text GENERATED ALWAYS as (kind || '/' || owner) STORED not null,
  "kind" text not null,
  "record_id" text not null,
  "owner" text not null,
  "events" integer not null,
  "since" timestamp(6) with time zone not null,
  "last_event_at" timestamp(6) with time zone not null,
  "wanted" timestamp(6) with time zone,
  "due_at" timestamp(6) with time zone not null,
  "attempts" integer default 0 not null,
  "tried_since" timestamp(6) with time zone,
  "error" text,
  "error_code" text
);

--> statement-breakpoint
create table "metersync"."typed_columns" (
  "view_name" text not null,
  "position" integer not null,
  "name" text not null,
  "path" text not null,
  "type" text not null,
  constraint "typed_columns_view_name_position_pk" primary key ("view_name", "position"),
  constraint "typed_columns_name" unique ("view_name", "name")
);

--> statement-breakpoint
create table "metersync"."typed_views" (
  "name" text primary key not null,
  "resource" text not null,
  "path" text not null,
  "definition" text not null,
  "made_at" timestamp(6) with time zone default now() not null,
  constraint "typed_views_place" unique ("resource", "path")
);

--> statement-breakpoint
create table "history"."companies" (
  "id" uuid not null,
  "external_id" text,
  "public_id" text,
  "name" text,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "valid_from" timestamp(6) with time zone not null,
  "valid_to" timestamp(6) with time zone not null,
  "ended_by_kind" text,
  "ended_by" text
);

--> statement-breakpoint
create table "history"."connections" (
  "id" uuid not null,
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
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "valid_from" timestamp(6) with time zone not null,
  "valid_to" timestamp(6) with time zone not null,
  "ended_by_kind" text,
  "ended_by" text
);

--> statement-breakpoint
create table "history"."documents" (
  "id" uuid not null,
  "company_id" uuid,
  "site_id" uuid,
  "created" timestamp(6) with time zone,
  "updated" timestamp(6) with time zone,
  "raw_updated" timestamp(6) with time zone,
  "usage_read_at" timestamp(6) with time zone,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "revised_document_id" uuid GENERATED ALWAYS as (
    metersync.uuid_of(raw ->> 'revisedDocumentId')
  ) STORED,
  "valid_from" timestamp(6) with time zone not null,
  "valid_to" timestamp(6) with time zone not null,
  "ended_by_kind" text,
  "ended_by" text
);

--> statement-breakpoint
create table "history"."meters" (
  "id" text not null,
  "company_id" uuid,
  "site_id" uuid,
  "account_id" text,
  "datasource_type" text,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "valid_from" timestamp(6) with time zone not null,
  "valid_to" timestamp(6) with time zone not null,
  "ended_by_kind" text,
  "ended_by" text
);

--> statement-breakpoint
create table "history"."sites" (
  "id" uuid not null,
  "company_id" uuid,
  "name" text,
  "raw" jsonb,
  "api_version" text,
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "valid_from" timestamp(6) with time zone not null,
  "valid_to" timestamp(6) with time zone not null,
  "ended_by_kind" text,
  "ended_by" text
);

--> statement-breakpoint
create table "history"."usage_data" (
  "id" uuid not null,
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
  "first_synced_at" timestamp(6) with time zone default now() not null,
  "synced_at" timestamp(6) with time zone,
  "deleted_at" timestamp(6) with time zone,
  "deleted_reason" text,
  "is_estimated" boolean GENERATED ALWAYS as (metersync.boolean_of(raw ->> 'isEstimated')) STORED,
  "exclusion" boolean GENERATED ALWAYS as (metersync.boolean_of(raw ->> 'exclusion')) STORED,
  "net_metering_type" text GENERATED ALWAYS as (raw ->> 'netMeteringType') STORED,
  "billed_demand" numeric GENERATED ALWAYS as (
    metersync.number_of(raw ->> 'billedDemand')
  ) STORED,
  "valid_from" timestamp(6) with time zone not null,
  "valid_to" timestamp(6) with time zone not null,
  "ended_by_kind" text,
  "ended_by" text
);

--> statement-breakpoint
create table "ops"."company_overrides" (
  "company_id" uuid primary key not null,
  "time_zone" text,
  "emission_region" text,
  constraint "company_overrides_time_zone" check (metersync.is_time_zone(time_zone))
);

--> statement-breakpoint
create table "ops"."contract_changes" (
  "id" bigint primary key generated always as identity (
    sequence name "ops"."contract_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START
    with
      1 CACHE 1
  ),
  "seen_at" timestamp(6) with time zone default clock_timestamp() not null,
  "resource" text not null,
  "api_version" text not null,
  "path" text not null,
  "change" text not null,
  "value" text,
  "is_baseline" boolean not null,
  constraint "contract_changes_change" check (change in ('resource', 'path', 'type', 'value'))
);

--> statement-breakpoint
create table "ops"."data_issues" (
  "id" bigint primary key generated always as identity (
    sequence name "ops"."data_issues_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START
    with
      1 CACHE 1
  ),
  "check_name" text not null,
  "severity" text not null,
  "company_id" uuid,
  "entity_type" text not null,
  "entity_id" text not null,
  "subject" text default '' not null,
  "evidence" jsonb not null,
  "opened_at" timestamp(6) with time zone default now() not null,
  "last_seen_at" timestamp(6) with time zone default now() not null,
  "closed_at" timestamp(6) with time zone,
  "closed_reason" text,
  "acknowledged_at" timestamp(6) with time zone,
  "acknowledged_note" text,
  constraint "data_issues_severity" check (severity in ('error', 'warning', 'info')),
  constraint "data_issues_closed_reason" check (
    (closed_reason is null) = (closed_at is null)
    and closed_reason in ('evidence_gone', 'check_off', 'check_removed')
  ),
  constraint "data_issues_acknowledged_note" check (
    acknowledged_note is null
    or acknowledged_at is not null
  )
);

--> statement-breakpoint
create table "ops"."emission_factors" (
  "id" bigint primary key generated always as identity (
    sequence name "ops"."emission_factors_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START
    with
      1 CACHE 1
  ),
  "region" text default '' not null,
  "datasource_type" text not null,
  "scope" smallint not null,
  "method" text default '' not null,
  "valid_from" date default '-infinity' not null,
  "valid_to" date default 'infinity' not null,
  "units" text not null,
  "kg_co2e_per_unit" numeric not null,
  "source" text not null,
  "version" text default '' not null,
  "created_at" timestamp(6) with time zone default now() not null,
  constraint "emission_factors_scope" check (scope between 1 and 3),
  constraint "emission_factors_method" check (method in ('', 'location', 'market')),
  constraint "emission_factors_valid" check (valid_to > valid_from)
);

--> statement-breakpoint
create table "ops"."site_overrides" (
  "site_id" uuid primary key not null,
  "time_zone" text,
  "emission_region" text,
  "floor_area" numeric,
  "floor_area_units" text,
  constraint "site_overrides_time_zone" check (metersync.is_time_zone(time_zone))
);

--> statement-breakpoint
create table "ops"."unit_factors" (
  "units" text not null,
  "datasource_type" text default '' not null,
  "dimension" text not null,
  "standard_units" text not null,
  "factor" numeric not null,
  "source" text not null,
  constraint "unit_factors_units_datasource_type_pk" primary key ("units", "datasource_type")
);

--> statement-breakpoint
create index "companies_external" on "utility"."companies" using btree("external_id");

--> statement-breakpoint
create index "companies_name" on "utility"."companies" using btree(coalesce(name, ''), "id");

--> statement-breakpoint
create index "connections_company" on "utility"."connections" using btree("company_id");

--> statement-breakpoint
create index "connections_status" on "utility"."connections" using btree("status", "id");

--> statement-breakpoint
create index "documents_company" on "utility"."documents" using btree("company_id");

--> statement-breakpoint
create index "documents_revised" on "utility"."documents" using btree("company_id")
where revised_document_id is not null;

--> statement-breakpoint
create index "intervals_start" on "utility"."intervals" using brin("start_at");

--> statement-breakpoint
create index "meters_company" on "utility"."meters" using btree("company_id");

--> statement-breakpoint
create index "sites_company" on "utility"."sites" using btree("company_id");

--> statement-breakpoint
create index "usage_data_company" on "utility"."usage_data" using btree("company_id");

--> statement-breakpoint
create index "usage_data_document" on "utility"."usage_data" using btree("document_id");

--> statement-breakpoint
create index "usage_data_meter" on "utility"."usage_data" using btree("meter_id");

--> statement-breakpoint
create unique index "alerts_live" on "metersync"."alerts" using btree("name", "key")
where closed_at is null;

--> statement-breakpoint
create index "alerts_closed" on "metersync"."alerts" using btree("closed_at")
where closed_at is not null;

--> statement-breakpoint
create index "notifications_waiting" on "metersync"."notifications" using btree("target", "made_at")
where sent_at is null;

--> statement-breakpoint
create index "notifications_made" on "metersync"."notifications" using btree("made_at");

--> statement-breakpoint
create index "also_listed_company" on "metersync"."also_listed" using btree("company_id", "resource");

--> statement-breakpoint
create index "company_changes_company" on "metersync"."company_changes" using btree("company_id");

--> statement-breakpoint
create index "company_changes_at" on "metersync"."company_changes" using btree("changed_at");

--> statement-breakpoint
create index "company_months_expired" on "metersync"."company_months" using btree("valid_until");

--> statement-breakpoint
create index "monthly_cost_company" on "metersync"."monthly_cost" using btree("company_id");

--> statement-breakpoint
create index "monthly_usage_company" on "metersync"."monthly_usage" using btree("company_id");

--> statement-breakpoint
create index "monthly_usage_by_site_company" on "metersync"."monthly_usage_by_site" using btree("company_id");

--> statement-breakpoint
create index "monthly_usage_by_company_company" on "metersync"."monthly_usage_by_company" using btree("company_id");

--> statement-breakpoint
create index "monthly_cost_by_site_company" on "metersync"."monthly_cost_by_site" using btree("company_id");

--> statement-breakpoint
create index "monthly_cost_by_company_company" on "metersync"."monthly_cost_by_company" using btree("company_id");

--> statement-breakpoint
create index "monthly_by_site_company" on "metersync"."monthly_by_site" using btree("company_id");

--> statement-breakpoint
create index "deletes_undecided" on "metersync"."deletes" using btree("company_id", "resource")
where state = 'quarantined';

--> statement-breakpoint
create index "deletes_record" on "metersync"."deletes" using btree("resource", "record_id");

--> statement-breakpoint
create index "journal_record" on "metersync"."journal" using btree("record_id", "recorded_at");

--> statement-breakpoint
create index "journal_received" on "metersync"."journal" using btree("received_at", "id");

--> statement-breakpoint
create index "journal_company" on "metersync"."journal" using btree("company_id", "received_at", "id")
where company_id is not null;

--> statement-breakpoint
create index "journal_unhappy" on "metersync"."journal" using btree("arrived_as", "recorded_at", "id")
where arrived_as in ('dead', 'ignored');

--> statement-breakpoint
create index "journal_with_payload" on "metersync"."journal" using btree("received_at")
where payload_dropped_at is null;

--> statement-breakpoint
create index "operations_actor" on "metersync"."operations" using btree("actor", "id");

--> statement-breakpoint
create index "runs_company" on "metersync"."runs" using btree("company_id", "resource", "finished_at");

--> statement-breakpoint
create index "runs_under_way" on "metersync"."runs" using btree("run_id")
where finished_at is null;

--> statement-breakpoint
create index "runs_failed" on "metersync"."runs" using btree("finished_at")
where resource is not null
  and state in ('failed', 'partial');

--> statement-breakpoint
create index "runs_missed" on "metersync"."runs" using btree("finished_at")
where company_id is not null
  and rows_missed > 0;

--> statement-breakpoint
create index "settlements_record" on "metersync"."settlements" using btree("kind", "record_id", "read_at");

--> statement-breakpoint
create index "settlements_settled" on "metersync"."settlements" using btree("settled_at");

--> statement-breakpoint
create index "settlements_unhappy" on "metersync"."settlements" using btree("outcome", "settled_at", "record_id")
where outcome <> 'applied';

--> statement-breakpoint
create index "settlements_short" on "metersync"."settlements" using btree("owner")
where intervals_found < intervals_reported;

--> statement-breakpoint
create index "stale_records_queue" on "metersync"."stale_records" using btree("queue", "due_at", "record_id");

--> statement-breakpoint
create index "stale_records_due" on "metersync"."stale_records" using btree("kind", "due_at", "record_id");

--> statement-breakpoint
create index "stale_records_failed" on "metersync"."stale_records" using btree("error_code", "due_at", "record_id")
where error_code is not null;

--> statement-breakpoint
create index "history_companies_id" on "history"."companies" using btree("id", "valid_to");

--> statement-breakpoint
create index "history_connections_id" on "history"."connections" using btree("id", "valid_to");

--> statement-breakpoint
create index "history_documents_id" on "history"."documents" using btree("id", "valid_to");

--> statement-breakpoint
create index "history_documents_company" on "history"."documents" using btree("company_id");

--> statement-breakpoint
create index "history_meters_id" on "history"."meters" using btree("id", "valid_to");

--> statement-breakpoint
create index "history_sites_id" on "history"."sites" using btree("id", "valid_to");

--> statement-breakpoint
create index "history_usage_data_id" on "history"."usage_data" using btree("id", "valid_to");

--> statement-breakpoint
create index "contract_changes_seen" on "ops"."contract_changes" using btree("seen_at");

--> statement-breakpoint
create unique index "data_issues_open" on "ops"."data_issues" using btree("check_name", "entity_type", "entity_id", "subject")
where closed_at is null;

--> statement-breakpoint
create index "data_issues_company" on "ops"."data_issues" using btree("company_id", "check_name");

--> statement-breakpoint
create index "data_issues_new" on "ops"."data_issues" using btree("check_name", "severity", "opened_at", "id")
where closed_at is null
  and acknowledged_at is null;

--> statement-breakpoint
create index "data_issues_acknowledged" on "ops"."data_issues" using btree("id")
where closed_at is null
  and acknowledged_at is not null;

--> statement-breakpoint
-- Keeps the state that a change ends, in the transaction of the change. It ends for an event that
-- waits for the record or that came in this transaction, else for the run that is reading the
-- company. A statement that changes no record costs a look at an empty table. Arguments: the column
-- that names the record in the journal, '' for none; the columns whose change makes another state,
-- separated by commas.
create function metersync.keep_history()
returns trigger
language plpgsql
as $$
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
-- The log of operations: a row is finished once, and nothing else of it changes.
create function metersync.keep_operation()
returns trigger
language plpgsql
as $$
begin
  if TG_OP = 'UPDATE'
    and old.outcome is null
    and new.outcome is not null
    and (new.id, new.at, new.actor, new.role, new.source, new.action, new.target)
      = (old.id, old.at, old.actor, old.role, old.source, old.action, old.target)
  then
    return new;
  end if;
  raise exception 'metersync.operations is a log: its rows are finished once, and stay';
end
$$;

--> statement-breakpoint
create trigger keep_operation
before update or delete on metersync.operations for each row
execute function metersync.keep_operation();

--> statement-breakpoint
create trigger keep_operations
before truncate on metersync.operations for each statement
execute function metersync.keep_operation();

--> statement-breakpoint
-- What a row of the catalogue says more than before. Until a run has ended that began after the
-- resource was first seen, it is the baseline: everything is new then.
create function metersync.note_contract_changes()
returns trigger
language plpgsql
as $$
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
-- Settings of sites and units are part of the checks' input. Whoever changes them needs no right to
-- the checks.
create function metersync.check_all_again()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from metersync.data_checks;
  return null;
end
$$;

--> statement-breakpoint
-- Notes the companies whose records changed, in the transaction of the change. What is no record of
-- a company concerns all. Argument: the columns that months are worked out from, separated by
-- commas. The first meters of all concern every company: till then no record needs its meter.
create function metersync.note_changes()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  is_first boolean := false;
begin
  if TG_NARGS = 0 or TG_OP = 'TRUNCATE' then
    insert into metersync.company_changes (company_id) values (null);
  elsif TG_OP = 'INSERT' then
    if TG_TABLE_NAME = 'meters' then
      select count(*) > 0 and count(*) = (
        select count(*) from (
          select from utility.meters order by id limit (select count(*) + 1 from new_rows)
        ) there)
      into is_first from new_rows;
    end if;
    insert into metersync.company_changes (company_id)
    select distinct company_id from new_rows where company_id is not null
    union all
    select null where is_first;
  elsif TG_OP = 'DELETE' then
    insert into metersync.company_changes (company_id)
    select distinct company_id from old_rows where company_id is not null;
  elsif exists (select from old_rows) then
    execute format($sql$
      insert into metersync.company_changes (company_id)
      select distinct c.company_id
      from old_rows o
        join new_rows n using (id)
        cross join lateral (values (o.company_id), (n.company_id)) c (company_id)
      where (%1$s) is distinct from (%2$s)
        and c.company_id is not null$sql$,
      'o.' || replace(TG_ARGV[0], ',', ', o.'), 'n.' || replace(TG_ARGV[0], ',', ', n.'));
  end if;
  return null;
end
$$;

--> statement-breakpoint
create trigger keep_history
after update on utility.companies REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history(
  '',
  'external_id,public_id,name,raw,api_version,deleted_at'
);

--> statement-breakpoint
create trigger keep_history
after update on utility.sites REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history('', 'company_id,name,raw,api_version,deleted_at');

--> statement-breakpoint
create trigger keep_history
after update on utility.connections REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history(
  'id',
  'company_id,external_id,datasource,status,url,raw,api_version,deleted_at'
);

--> statement-breakpoint
create trigger keep_history
after update on utility.documents REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history('id', 'company_id,site_id,raw,api_version,deleted_at');

--> statement-breakpoint
create trigger keep_history
after update on utility.usage_data REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history(
  'document_id',
  'company_id,document_id,meter_id,start_date,end_date,usage,usage_units,raw,api_version,deleted_at'
);

--> statement-breakpoint
create trigger keep_history
after update on utility.meters REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.keep_history(
  '',
  'company_id,site_id,account_id,datasource_type,raw,api_version,deleted_at'
);

--> statement-breakpoint
create trigger note_contract_changes_of_new
after insert on metersync.field_catalogue for each row
execute function metersync.note_contract_changes();

--> statement-breakpoint
create trigger note_contract_changes
after update on metersync.field_catalogue for each row when (
  new.types <> old.types
  or new.enum_values <> old.enum_values
)
execute function metersync.note_contract_changes();

--> statement-breakpoint
create trigger check_again
after insert or update or delete or truncate on ops.site_overrides for EACH STATEMENT
execute function metersync.check_all_again();

--> statement-breakpoint
create trigger check_again
after insert or update or delete or truncate on ops.company_overrides for EACH STATEMENT
execute function metersync.check_all_again();

--> statement-breakpoint
create trigger check_again
after insert or update or delete or truncate on ops.unit_factors for EACH STATEMENT
execute function metersync.check_all_again();

--> statement-breakpoint
create trigger note_inserts
after insert on utility.documents REFERENCING NEW table as new_rows for EACH STATEMENT
execute function metersync.note_changes('company_id,site_id,created,raw,api_version,deleted_at');

--> statement-breakpoint
create trigger note_updates
after update on utility.documents REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.note_changes('company_id,site_id,created,raw,api_version,deleted_at');

--> statement-breakpoint
create trigger note_deletes
after delete on utility.documents REFERENCING OLD table as old_rows for EACH STATEMENT
execute function metersync.note_changes('company_id,site_id,created,raw,api_version,deleted_at');

--> statement-breakpoint
create trigger note_truncate
after truncate on utility.documents for EACH STATEMENT
execute function metersync.note_changes();

--> statement-breakpoint
create trigger note_inserts
after insert on utility.usage_data REFERENCING NEW table as new_rows for EACH STATEMENT
execute function metersync.note_changes(
  'company_id,document_id,meter_id,start_date,end_date,usage,usage_units,created,raw,deleted_at'
);

--> statement-breakpoint
create trigger note_updates
after update on utility.usage_data REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.note_changes(
  'company_id,document_id,meter_id,start_date,end_date,usage,usage_units,created,raw,deleted_at'
);

--> statement-breakpoint
create trigger note_deletes
after delete on utility.usage_data REFERENCING OLD table as old_rows for EACH STATEMENT
execute function metersync.note_changes(
  'company_id,document_id,meter_id,start_date,end_date,usage,usage_units,created,raw,deleted_at'
);

--> statement-breakpoint
create trigger note_truncate
after truncate on utility.usage_data for EACH STATEMENT
execute function metersync.note_changes();

--> statement-breakpoint
create trigger note_inserts
after insert on utility.meters REFERENCING NEW table as new_rows for EACH STATEMENT
execute function metersync.note_changes('company_id,site_id,datasource_type,raw,deleted_at');

--> statement-breakpoint
create trigger note_updates
after update on utility.meters REFERENCING OLD table as old_rows NEW table as new_rows for EACH STATEMENT
execute function metersync.note_changes('company_id,site_id,datasource_type,raw,deleted_at');

--> statement-breakpoint
create trigger note_deletes
after delete on utility.meters REFERENCING OLD table as old_rows for EACH STATEMENT
execute function metersync.note_changes('company_id,site_id,datasource_type,raw,deleted_at');

--> statement-breakpoint
create trigger note_truncate
after truncate on utility.meters for EACH STATEMENT
execute function metersync.note_changes();

--> statement-breakpoint
create trigger note_changes
after insert or update or delete or truncate on ops.unit_factors for EACH STATEMENT
execute function metersync.note_changes();

--> statement-breakpoint
insert into
  metersync.catch_ups(kind)
values
  ('connections'),
  ('documents'),
  ('intervals');

--> statement-breakpoint
-- Exact definitions (SI, NIST SP 811, the international yard and pound, the Btu of the
-- International Table). Units of several meanings (M of MCF is a thousand) follow the trade.
insert into
  ops.unit_factors(units, dimension, standard_units, factor, source)
select
  units,
  dimension,
  standard_units,
  factor,
  'definition'
from
  (
    values
      (
        'energy',
        'kWh',
        array[
          'J',
          'kJ',
          'MJ',
          'GJ',
          'TJ',
          'erg',
          'Cal',
          'kCal',
          'MCal',
          'Wh',
          'kWh',
          'MWh',
          'GWh',
          'Btu',
          'MMBtu',
          'thm (EC)',
          'thm (US)',
          'thm (UK)',
          'Dth (EC)',
          'Dth (US)',
          'Dth (UK)',
          'ton hours'
        ],
        array[
          1 / 3600000.0,
          1 / 3600.0,
          1 / 3.6,
          1000 / 3.6,
          1000000 / 3.6,
          1 / 36000000000000.0,
          4.184 / 3600000,
          4.184 / 3600,
          4.184 / 3.6,
          0.001,
          1,
          1000,
          1000000,
          1055.05585262 / 3600000,
          1055.05585262 / 3.6,
          105.505585262 / 3.6,
          105.4804 / 3.6,
          105.505585257348 / 3.6,
          1055.05585262 / 3.6,
          1054.804 / 3.6,
          1055.05585257348 / 3.6,
          12.66067023144 / 3.6
        ]
      ),
      ('power', 'kW', array['W', 'KW', 'kW', 'MW', 'GW'], array[0.001, 1, 1, 1000, 1000000]),
      ('apparent power', 'kVA', array['kVA'], array[1]),
      ('reactive power', 'kVAR', array['kVAR'], array[1]),
      (
        'volume',
        'cubic m',
        array[
          'L',
          'kL',
          'ML',
          'cubic m',
          'cubic ft',
          'cubic yd',
          'CF',
          'CCF',
          'HCF',
          'MCF',
          'MMCF',
          'gal (US)',
          '100 gal (US)',
          'kgal (US)',
          'Mgal (US)',
          'gal (UK)',
          '100 gal (UK)',
          'kgal (UK)',
          'Mgal (UK)',
          'bbl',
          'mbbl'
        ],
        array[
          0.001,
          1,
          1000,
          1,
          0.028316846592,
          0.764554857984,
          0.028316846592,
          2.8316846592,
          2.8316846592,
          28.316846592,
          28316.846592,
          0.003785411784,
          0.3785411784,
          3.785411784,
          3785.411784,
          0.00454609,
          0.454609,
          4.54609,
          4546.09,
          0.158987294928,
          158.987294928
        ]
      ),
      (
        'mass',
        'kg',
        array[
          'g',
          'kg',
          'metric ton',
          'tonne',
          'lb',
          'mlb',
          'oz t',
          'tons (US)',
          'sh ton',
          'long tn'
        ],
        array[
          0.001,
          1,
          1000,
          1000,
          0.45359237,
          453.59237,
          0.0311034768,
          907.18474,
          907.18474,
          1016.0469088
        ]
      ),
      (
        'length',
        'km',
        array['km', 'm', 'cm', 'mm', 'nm', 'mi', 'yd', 'ft', 'in.'],
        array[
          1,
          0.001,
          0.00001,
          0.000001,
          0.000000000001,
          1.609344,
          0.0009144,
          0.0003048,
          0.0000254
        ]
      )
  ) as kind(dimension, standard_units, names, factors),
  unnest(names, factors) as t(units, factor);

--> statement-breakpoint
-- Readings of any year may come, and a partition of each of their months would take more locks than
-- a server has. Months within metersync.interval_months() have one each, made when the first
-- reading comes; what lies before and after stands in these two. No default partition: making a
-- month would have to wait for everybody who reads it.
create table utility.intervals_before_2000(like utility.intervals INCLUDING all);

create table utility.intervals_from_2050(like utility.intervals INCLUDING all);

alter table utility.intervals ATTACH PARTITION utility.intervals_before_2000 for
values
from (MINVALUE) to('2000-01-01 00:00:00+00');

alter table utility.intervals ATTACH PARTITION utility.intervals_from_2050 for
values
from ('2050-01-01 00:00:00+00') to(MAXVALUE);

--> statement-breakpoint
-- How many rows a look for one meter finds in a month. Counting what is there would say as many as
-- a meter with readings has, for each meter, and most have none: reading whole months would look
-- cheaper than asking for the meters of a company. The fraction stands for some 500, between the
-- 744 hours and the 30 days that a month has, and grows with the table.
alter table utility.intervals_before_2000
alter column meter_id
set
  (n_distinct = -0.002);

alter table utility.intervals_from_2050
alter column meter_id
set
  (n_distinct = -0.002);

alter table utility.intervals
alter column meter_id
set
  (n_distinct_inherited = -0.002);

--> statement-breakpoint
do $$
declare
  described record;
begin
  for described in
    select t.relname, c.comment_text, c.column_name
    from (values
      ('raw', 'The record as the API returned it, less secret fields; NULL until it is read.'),
      ('api_version', 'Version of the API that it was read from, for example v2.2.'),
      ('first_synced_at', 'When metersync first wrote it.'),
      ('synced_at', 'When the read began that brought it.'),
      ('deleted_at', 'When metersync found it gone; NULL while it lives. Values are kept.'),
      ('deleted_reason', 'event: a delete event; absent: complete, stable listings lack it; listed: among deleted ones; not_found: 404 of its own endpoint; document: its document is gone.')
    ) as c (column_name, comment_text)
    cross join (values ('companies'), ('sites'), ('connections'), ('documents'), ('usage_data'), ('meters')) as t (relname)
  loop
    execute format('comment on column utility.%I.%I is %L', described.relname, described.column_name, described.comment_text);
  end loop;
end
$$;

--> statement-breakpoint
comment on SCHEMA utility is 'Each record as the service sent it last.';
comment on table utility.companies is 'Companies of the organization.';
comment on column utility.companies.id is 'Id at the service.';
comment on column utility.companies.external_id is 'Id chosen by the customer.';
comment on column utility.companies.public_id is 'The service''s public id, from events.';
comment on column utility.companies.name is 'Name.';
comment on table utility.connection_sites is
  'Sites that a connection serves, and through which accounts.';
comment on column utility.connection_sites.connection_id is 'Connection.';
comment on column utility.connection_sites.site_id is 'Site.';
comment on column utility.connection_sites.account_ids is 'Its accounts.';
comment on column utility.connection_sites.datasource_types is
  'Commodities that the connection has there.';
comment on table utility.connection_status_changes is 'Status changes that events reported.';
comment on column utility.connection_status_changes.connection_id is 'Connection.';
comment on column utility.connection_status_changes.old_status is 'The status before.';
comment on column utility.connection_status_changes.status is 'Status.';
comment on column utility.connection_status_changes.at is
  'The connection''s updated in the event.';
comment on column utility.connection_status_changes.event_id is
  'The event; of several the smallest id.';
comment on table utility.connections is 'Connections to utilities.';
comment on column utility.connections.id is 'Id at the service.';
comment on column utility.connections.company_id is 'Company.';
comment on column utility.connections.external_id is 'Id chosen by the customer.';
comment on column utility.connections.datasource is 'Name of the utility.';
comment on column utility.connections.status is
  'An open list: PENDING, CONNECTED, MFA_TOKEN_EXPIRED, …';
comment on column utility.connections.url is 'Address of the provider''s portal.';
comment on column utility.connections.created is 'When the service created the record.';
comment on column utility.connections.updated is 'When the service last changed the record.';
comment on column utility.connections.raw_updated is
  'updated of the state in raw: older than updated while an event waits for a read.';
comment on column utility.connections.digest is
  'SHA-256 of what the row was made of: an equal record is not written again.';
comment on table utility.documents is 'Utility bills.';
comment on column utility.documents.id is 'Id at the service.';
comment on column utility.documents.company_id is 'Company.';
comment on column utility.documents.site_id is 'Site that the record or an event names.';
comment on column utility.documents.created is 'When the service created the record.';
comment on column utility.documents.updated is 'When the service last changed the record.';
comment on column utility.documents.raw_updated is
  'updated of the state in raw: older than updated while an event waits for a read.';
comment on column utility.documents.usage_read_at is 'When the last read of all its usage began.';
comment on column utility.documents.revised_document_id is
  'The service''s link to the document that superseded it.';
comment on column utility.documents.digest is
  'SHA-256 of what the row was made of: an equal record is not written again.';
comment on table utility.intervals is
  'Interval readings, partitioned by month of start_at (UTC) from 2000 to 2049.';
comment on column utility.intervals.meter_id is 'Meter.';
comment on column utility.intervals.start_at is 'When the reading begins.';
comment on column utility.intervals.granularity_seconds is 'Length in seconds.';
comment on column utility.intervals.usage_units is 'Unit, as the service names it.';
comment on column utility.intervals.usage is 'Exact amount in usage_units.';
comment on column utility.intervals.quality is
  'As the service sent it, for example ACTUAL or ESTIMATED.';
comment on column utility.intervals.updated is 'When the service last changed it, where it says.';
comment on column utility.intervals.synced_at is 'When the read began that brought it.';
comment on table utility.meters is 'Meters.';
comment on column utility.meters.id is 'Id at the service.';
comment on column utility.meters.company_id is 'Company.';
comment on column utility.meters.site_id is 'Site.';
comment on column utility.meters.account_id is 'Account at the provider.';
comment on column utility.meters.datasource_type is 'Commodity, for example ELECTRICITY.';
comment on column utility.meters.digest is
  'SHA-256 of what the row was made of: an equal record is not written again.';
comment on table utility.sites is 'Sites of companies.';
comment on column utility.sites.id is 'Id at the service.';
comment on column utility.sites.company_id is 'Company.';
comment on column utility.sites.name is 'Name.';
comment on table utility.usage_data is 'Usage of one meter over one period, from one bill.';
comment on column utility.usage_data.id is 'Id at the service.';
comment on column utility.usage_data.company_id is 'Company.';
comment on column utility.usage_data.document_id is 'Bill: the document.';
comment on column utility.usage_data.meter_id is 'Meter.';
comment on column utility.usage_data.start_date is 'First day, as the service sent it.';
comment on column utility.usage_data.end_date is 'Last day, as the service sent it.';
comment on column utility.usage_data.usage is 'Exact amount in usage_units.';
comment on column utility.usage_data.usage_units is 'Unit, as the service names it.';
comment on column utility.usage_data.created is 'When the service created the record.';
comment on column utility.usage_data.updated is 'When the service last changed the record.';
comment on column utility.usage_data.is_estimated is 'Whether the utility estimated it.';
comment on column utility.usage_data.exclusion is 'Whether sums subtract it.';
comment on column utility.usage_data.net_metering_type is
  'IMPORT, EXPORT or GENERATION; NULL without net metering.';
comment on column utility.usage_data.billed_demand is
  'Demand that the bill charges, as the service sent it.';
comment on column utility.usage_data.digest is
  'SHA-256 of what the row was made of: an equal record is not written again.';

--> statement-breakpoint
comment on SCHEMA history is
  'Earlier states of each record: a row is what utility said from valid_from until valid_to. '
  'The present state is in utility alone.';

--> statement-breakpoint
comment on SCHEMA metersync is
  'The pipeline''s own state: the journal of events, runs, what was refused.';
comment on table metersync.also_listed is
  'Records that a company''s listing shows though another company owns them.';
comment on column metersync.also_listed.resource is 'Kind of the record.';
comment on column metersync.also_listed.record_id is 'Id of the record.';
comment on column metersync.also_listed.company_id is
  'The company whose listing shows it, and that is not its owner.';
comment on table metersync.alerts is 'Alarms that workers raised: pending, open and closed.';
comment on column metersync.alerts.id is 'The alarm, the same from its beginning to its end.';
comment on column metersync.alerts.name is 'Its name in docs/runbooks.md.';
comment on column metersync.alerts.key is
  'What tells it apart from others of its name, for example a failure code.';
comment on column metersync.alerts.detail is 'What was seen last.';
comment on column metersync.alerts.pending_since is 'When its condition began.';
comment on column metersync.alerts.opened_at is
  'When it had lasted long enough; null until then.';
comment on column metersync.alerts.reminded_at is 'When targets were last reminded of it.';
comment on column metersync.alerts.notified_at is 'When a target last took word of it.';
comment on column metersync.alerts.error is
  'Why targets have not taken the last word of it; null once all have.';
comment on column metersync.alerts.closed_at is 'When its condition was over.';
comment on table metersync.heartbeat is 'When the look of each minute last ran.';
comment on column metersync.heartbeat.one is 'Always true: there is one row.';
comment on column metersync.heartbeat.at is 'When it last ran.';
comment on table metersync.notifications is
  'What the targets of NOTIFY_URLS are sent: one row for each message and target.';
comment on column metersync.notifications.message_id is
  'The message, the same for all targets and tries.';
comment on column metersync.notifications.target is 'The target, without its secrets.';
comment on column metersync.notifications.message is 'The alarms that it reports.';
comment on column metersync.notifications.alert_ids is 'Their ids.';
comment on column metersync.notifications.made_at is 'When a look made it.';
comment on column metersync.notifications.attempts is 'How often it was sent.';
comment on column metersync.notifications.sent_at is 'When the target took it; null until then.';
comment on column metersync.notifications.error is 'Why the target did not take it.';
comment on table metersync.catch_ups is 'Whether the catch-up workflow of each kind is awake.';
comment on column metersync.catch_ups.kind is 'connections, documents or intervals.';
comment on column metersync.catch_ups.awake is
  'True while the workflow runs; who records an event wakes it when false.';
comment on table metersync.company_changes is
  'Companies whose records changed since their months were kept; NULL for all.';
comment on column metersync.company_changes.company_id is 'The company; NULL for all.';
comment on column metersync.company_changes.changed_at is 'When it was written.';
comment on table metersync.company_months is 'Companies whose months were worked out.';
comment on column metersync.company_months.company_id is 'The company.';
comment on column metersync.company_months.made_at is 'When they were worked out.';
comment on column metersync.company_months.valid_from is
  'First date on which they hold; infinity where they rest on records of other companies.';
comment on column metersync.company_months.valid_until is 'First date on which they do not.';
comment on table metersync.monthly_usage is 'Kept rows of analytics.monthly_usage.';
comment on table metersync.monthly_cost is 'Kept rows of analytics.monthly_cost.';
comment on table metersync.monthly_usage_by_site is
  'Kept rows of analytics.monthly_usage_by_site.';
comment on table metersync.monthly_usage_by_company is
  'Kept rows of analytics.monthly_usage_by_company.';
comment on table metersync.monthly_cost_by_site is 'Kept rows of analytics.monthly_cost_by_site.';
comment on table metersync.monthly_cost_by_company is
  'Kept rows of analytics.monthly_cost_by_company.';
comment on table metersync.monthly_by_site is 'Kept rows of analytics.monthly_by_site.';
comment on table metersync.data_checks is
  'Companies that no change touched since their checks, by kind of checks.';
comment on column metersync.data_checks.company_id is 'The company.';
comment on column metersync.data_checks.run_with is
  'Which of ops.data_issue_checks were made: those that run with bills, connections or intervals.';
comment on column metersync.data_checks.seen_until is
  'Nothing that changed before was left out: the check began then, or it was found later that '
  'nothing had changed.';
comment on column metersync.data_checks.today is 'The date that the check took for today.';
comment on column metersync.data_checks.checks_off is 'Checks that were left out.';
comment on table metersync.deletes is
  'Rows that a run found gone: tombstoned, or kept until somebody decides.';
comment on column metersync.deletes.run_id is 'Run id.';
comment on column metersync.deletes.company_id is 'Company of the row.';
comment on column metersync.deletes.resource is 'Resource of the row.';
comment on column metersync.deletes.record_id is 'Id of the row.';
comment on column metersync.deletes.state is
  'quarantined: more rows than the cap, kept until somebody decides; applied: tombstoned; '
  'rejected: kept; undone: revived.';
comment on column metersync.deletes.reason is
  'absent: no pass of a backfill, or look of an audit, showed it; listed: a reconcile saw it '
  'among deleted documents.';
comment on column metersync.deletes.updated is
  'The updated of the record where the service lists it as deleted.';
comment on column metersync.deletes.absent_since is
  'When the first of the reads began that did not see it, or saw it among deleted ones.';
comment on column metersync.deletes.noted_at is 'When the run noted it.';
comment on column metersync.deletes.decided_at is 'When somebody decided.';
comment on table metersync.field_catalogue is 'What ops.field_catalogue shows.';
comment on column metersync.field_catalogue.resource is
  'documents, usageData, …; events/TYPE for payloads of events.';
comment on column metersync.field_catalogue.api_version is
  'Version of the API; webhooks for events.';
comment on column metersync.field_catalogue.path is
  'A JSON Pointer; * is any element of an array or field of a map, ~2 an asterisk in a name, '
  'empty the record itself.';
comment on column metersync.field_catalogue.types is
  'Types of its values: boolean, number, decimal (a number as text), timestamp, date, uuid, '
  'text, object, array.';
comment on column metersync.field_catalogue.records is
  'Records that had it, counted at each read; about.';
comment on column metersync.field_catalogue.first_seen_at is 'When a record first had it.';
comment on column metersync.field_catalogue.last_seen_at is 'When a record last had it.';
comment on column metersync.field_catalogue.example is
  'The first value, cut short; NULL for objects, arrays and possible secrets.';
comment on column metersync.field_catalogue.enum_values is
  'Its texts, while they are few and short.';
comment on column metersync.field_catalogue.collapsed is
  'Whether it is a map: its fields are too many, too deep, or named by data.';
comment on table metersync.interval_fetches is 'Ranges of readings that were fetched, by meter.';
comment on column metersync.interval_fetches.meter_id is 'The meter.';
comment on column metersync.interval_fetches.fetched is 'All ranges that were fetched, merged.';
comment on column metersync.interval_fetches.updated_at is 'When the last one was added.';
comment on table metersync.journal is 'The log of events: each verified event once, as it came.';
comment on column metersync.journal.id is
  'Message id of the delivery: the same on every attempt.';
comment on column metersync.journal.type is
  'Type of the event; derived from its shape where the payload names none; else unknown.';
comment on column metersync.journal.kind is 'connection, document, interval or ignored.';
comment on column metersync.journal.record_id is
  'Connection, document or meter that the event is about.';
comment on column metersync.journal.company_id is 'Company that the payload names.';
comment on column metersync.journal.occurred_at is 'updated of the record in the payload.';
comment on column metersync.journal.range_start is 'Start of a synced interval range.';
comment on column metersync.journal.range_end is 'End of a synced interval range.';
comment on column metersync.journal.received_at is
  'When the receiver had the request (its clock).';
comment on column metersync.journal.recorded_at is
  'When the event entered the journal (the warehouse''s clock).';
comment on column metersync.journal.payload is
  'The payload; NULL where Postgres cannot hold it: then body has its bytes.';
comment on column metersync.journal.body is
  'The exact bytes of a payload that jsonb cannot hold.';
comment on column metersync.journal.arrived_as is
  'What it was when it came: pending (its record had to be read), applied (nothing was left to '
  'read), ignored (unknown type), dead (it cannot be applied, see error).';
comment on column metersync.journal.error is 'Why it was dead when it came.';
comment on column metersync.journal.error_code is
  'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on column metersync.journal.interval_count is
  'Readings that the event said its range has.';
comment on column metersync.journal.workflow_id is 'Temporal workflow that recorded the event.';
comment on column metersync.journal.workflow_run_id is 'Its run.';
comment on column metersync.journal.payload_dropped_at is
  'When payload or body was dropped for its age: the id stays.';
comment on table metersync.operations is
  'Log of what people did, or were refused, with the console or the command. A trigger '
  'refuses other changes of it.';
comment on column metersync.operations.id is 'Id.';
comment on column metersync.operations.at is 'When it was asked for.';
comment on column metersync.operations.actor is
  'Who asked: a user of the console; of a command METERSYNC_ACTOR, else the user of the system.';
comment on column metersync.operations.role is 'viewer or operator: a viewer is refused.';
comment on column metersync.operations.source is 'console or command.';
comment on column metersync.operations.action is 'What was asked for, for example resume.';
comment on column metersync.operations.target is 'Of what: codes, ids, filters.';
comment on column metersync.operations.outcome is
  'done, failed or refused; NULL: it is under way, or its process ended first.';
comment on column metersync.operations.finished_at is 'When it ended.';
comment on column metersync.operations.detail is 'What it did, or why it did not.';
comment on table metersync.pages is 'Manifest of a running pass; unlogged.';
comment on column metersync.pages.run_id is 'Run id.';
comment on column metersync.pages.company_id is 'The company.';
comment on column metersync.pages.resource is 'The resource.';
comment on column metersync.pages.pass is 'Which pass over the listing.';
comment on column metersync.pages.asked is 'Page asked for.';
comment on column metersync.pages.current_page is 'Page that the service said it answered with.';
comment on column metersync.pages.total is 'Total that the service said.';
comment on column metersync.pages.has_next is 'Whether the service said that a page follows.';
comment on column metersync.pages.ids is 'Ids on the page.';
comment on column metersync.pages.read_at is 'When the read began.';
comment on table metersync.parked is
  'Why nothing is asked of the service, for example a refused API key; empty while all is '
  'well.';
comment on column metersync.parked.code is
  'Code of the failure, as docs/reference/failures.md lists them.';
comment on column metersync.parked.message is 'The failure in words.';
comment on column metersync.parked.since is 'When it was first met.';
comment on column metersync.parked.attempts is
  'How often it was met since, or since the last metersync resume.';
comment on column metersync.parked.next_attempt_at is 'Nothing is asked before this time.';
comment on table metersync.rejected_records is
  'Records that Postgres refused: NUL, impossible date, overflow.';
comment on column metersync.rejected_records.resource is 'Resource.';
comment on column metersync.rejected_records.record_id is
  'Id of the record, or a hash of its text where it has none.';
comment on column metersync.rejected_records.company_id is 'Company in whose listing it stood.';
comment on column metersync.rejected_records.error is 'Postgres''s words.';
comment on column metersync.rejected_records.record is
  'The record''s text, with each \u0000 as the service sent it.';
comment on column metersync.rejected_records.rejected_at is 'When Postgres refused it last.';
comment on table metersync.run_companies is
  'Companies that were chosen for a run; a run of all has none.';
comment on column metersync.run_companies.run_id is 'Run id.';
comment on column metersync.run_companies.company_id is 'The company.';
comment on column metersync.run_companies.refused is
  'Whether the service does not have it: it was not read.';
comment on table metersync.runs is
  'One row for each run, and one for each company and resource in it.';
comment on column metersync.runs.run_id is 'Run id.';
comment on column metersync.runs.company_id is
  'NULL for the run itself and its list of companies.';
comment on column metersync.runs.resource is 'NULL for the run itself.';
comment on column metersync.runs.kind is 'full: everything; reconcile: what was updated lately.';
comment on column metersync.runs.workflow_id is
  'Temporal workflow of the run, as temporal workflow show -w takes it; NULL for parts.';
comment on column metersync.runs.state is
  'running, complete, partial (a part failed), suspect (not proved complete) or failed.';
comment on column metersync.runs.started_at is 'When it began.';
comment on column metersync.runs.progress_at is
  'When a part that reads intervals last stored a page.';
comment on column metersync.runs.finished_at is 'When it ended; NULL while it runs.';
comment on column metersync.runs.pages is 'Pages that were read.';
comment on column metersync.runs.passes is 'Passes over the listing until one was stable.';
comment on column metersync.runs.total_said is 'The service''s total in the last pass.';
comment on column metersync.runs.distinct_ids is 'Distinct ids in the last pass.';
comment on column metersync.runs.rows_inserted is 'Rows that were new.';
comment on column metersync.runs.rows_changed is 'Rows whose record had changed.';
comment on column metersync.runs.rows_unchanged is 'Records that their rows had already.';
comment on column metersync.runs.rows_tombstoned is 'Rows that stable passes lacked.';
comment on column metersync.runs.rows_rejected is
  'Records that Postgres refused: see rejected_records.';
comment on column metersync.runs.rows_missed is 'Changes that no event had reported.';
comment on column metersync.runs.drift is
  'Pages that moved while they were read, over all passes.';
comment on column metersync.runs.requests is 'Requests that were sent to the service.';
comment on column metersync.runs.error is 'Error.';
comment on column metersync.runs.error_code is
  'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on table metersync.service_gate is
  'Until when all workers wait before they ask the service.';
comment on column metersync.service_gate.one is 'Always true: there is one row.';
comment on column metersync.service_gate.closed_until is
  'Nobody sends a request before this time.';
comment on column metersync.service_gate.updated_at is 'When a worker last changed it.';
comment on table metersync.service_workers is 'Workers that share the limit of requests.';
comment on column metersync.service_workers.worker_id is 'A worker process.';
comment on column metersync.service_workers.seen_at is 'When it last said that it lives.';
comment on column metersync.service_workers.held is
  'Requests at once that are its part of the limit, or that it still has in flight.';
comment on table metersync.settlements is
  'Reads that settled events, and events that were given up.';
comment on column metersync.settlements.kind is 'connection, document or interval.';
comment on column metersync.settlements.record_id is 'As in stale_records.';
comment on column metersync.settlements.owner is 'As in stale_records.';
comment on column metersync.settlements.since is
  'When the first of the events that waited was recorded.';
comment on column metersync.settlements.read_at is
  'When the read began: it settles events that were recorded from since until then.';
comment on column metersync.settlements.shown is
  'The state that the read returned: it settles events that named no newer one.';
comment on column metersync.settlements.settled_at is 'When its events were settled.';
comment on column metersync.settlements.outcome is
  'applied: their state, or a newer one, is in the warehouse; superseded: a newer state was '
  'already known, or the record is gone; missing: the service never showed it; dead: Postgres '
  'cannot hold it.';
comment on column metersync.settlements.updates_only is
  'Whether a deletion that waits for its company is not settled by it.';
comment on column metersync.settlements.error is 'Why they are dead or missing.';
comment on column metersync.settlements.error_code is
  'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on column metersync.settlements.attempts is 'Unsuccessful attempts before.';
comment on column metersync.settlements.intervals_reported is
  'Readings that the event said its range has.';
comment on column metersync.settlements.intervals_found is
  'Readings that the warehouse had in the range when it was last fetched.';
comment on table metersync.stale_records is
  'Records and ranges of readings that have to be read again.';
comment on column metersync.stale_records.key is 'kind and record_id: one record.';
comment on column metersync.stale_records.queue is 'kind and owner: what one catch-up reads.';
comment on column metersync.stale_records.kind is 'connection, document or interval.';
comment on column metersync.stale_records.record_id is
  'Connection or document; of an interval the id of its event.';
comment on column metersync.stale_records.owner is
  'Company whose listings show the record; of an interval the meter.';
comment on column metersync.stale_records.events is 'Events that wait for it.';
comment on column metersync.stale_records.since is 'When the first of them was recorded.';
comment on column metersync.stale_records.last_event_at is
  'When the last of them was recorded: a read that began later settles them all.';
comment on column metersync.stale_records.wanted is 'The newest state that its events name.';
comment on column metersync.stale_records.due_at is 'Not read again before this time.';
comment on column metersync.stale_records.attempts is
  'Unsuccessful attempts for the reason in error_code.';
comment on column metersync.stale_records.tried_since is
  'When the first of these attempts began: what was recorded later was not looked for as often.';
comment on column metersync.stale_records.error is 'Why it still waits.';
comment on column metersync.stale_records.error_code is
  'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on table metersync.typed_columns is
  'Columns of the typed views: a name stays with its field.';
comment on column metersync.typed_columns.view_name is 'The view.';
comment on column metersync.typed_columns.position is 'Order in which the columns came.';
comment on column metersync.typed_columns.name is 'Name of the column.';
comment on column metersync.typed_columns.path is 'As in field_catalogue.';
comment on column metersync.typed_columns.type is 'Type that holds every value that was seen.';
comment on table metersync.typed_views is 'The typed views of schema fields.';
comment on column metersync.typed_views.name is 'Name of the view.';
comment on column metersync.typed_views.resource is 'Resource whose records it shows.';
comment on column metersync.typed_views.path is
  'What of them it shows, as in ops.field_catalogue; empty: the records themselves.';
comment on column metersync.typed_views.definition is 'Digest of what it was made by.';
comment on column metersync.typed_views.made_at is 'When it was last made.';

--> statement-breakpoint
comment on SCHEMA ops is
  'What analysts may see of the pipeline, and what you set: overrides, factors.';
comment on table ops.company_overrides is
  'The same for sites without one of their own; yours to fill.';
comment on column ops.company_overrides.company_id is 'Company.';
comment on column ops.company_overrides.time_zone is 'IANA name; NULL: UTC.';
comment on column ops.company_overrides.emission_region is
  'Region that selects emission factors.';
comment on table ops.contract_changes is
  'Resources, fields, types and enumerated values, when the service first sent them.';
comment on column ops.contract_changes.id is 'Id.';
comment on column ops.contract_changes.seen_at is 'When a record first showed it.';
comment on column ops.contract_changes.resource is
  'documents, usageData, …; events/TYPE for payloads of events.';
comment on column ops.contract_changes.api_version is 'Version of the API; webhooks for events.';
comment on column ops.contract_changes.path is 'As in field_catalogue.';
comment on column ops.contract_changes.change is 'resource, path, type or value.';
comment on column ops.contract_changes.value is 'The type or value; of a path its types.';
comment on column ops.contract_changes.is_baseline is
  'Whether it came before a first backfill had read the resource.';
comment on table ops.data_issues is 'Findings of the checks, open while closed_at is NULL.';
comment on column ops.data_issues.id is 'Id.';
comment on column ops.data_issues.check_name is 'Check, as in data_issue_checks.';
comment on column ops.data_issues.severity is
  'error: numbers are wrong; warning: look at it; info: good to know.';
comment on column ops.data_issues.company_id is 'Company.';
comment on column ops.data_issues.entity_type is 'document, usage, meter or connection.';
comment on column ops.data_issues.entity_id is 'Id of the entity.';
comment on column ops.data_issues.subject is
  'Tells issues of one entity apart: a period or another id.';
comment on column ops.data_issues.evidence is 'Figures that show it.';
comment on column ops.data_issues.opened_at is 'When a check first found it.';
comment on column ops.data_issues.last_seen_at is 'When a check last found it.';
comment on column ops.data_issues.closed_at is
  'When no check found it any more; NULL while it is open.';
comment on column ops.data_issues.closed_reason is
  'evidence_gone: it is no longer found; check_off: it is in CHECKS_OFF; check_removed: it is no '
  'more. NULL while it is open.';
comment on column ops.data_issues.acknowledged_at is
  'When somebody acknowledged it: it stays open.';
comment on column ops.data_issues.acknowledged_note is 'What they noted.';
comment on table ops.emission_factors is
  'Emission factors that you supply: there are none at first.';
comment on column ops.emission_factors.id is 'Id.';
comment on column ops.emission_factors.region is
  'Emission region (see site_overrides); empty: every site.';
comment on column ops.emission_factors.datasource_type is 'Commodity, for example ELECTRICITY.';
comment on column ops.emission_factors.scope is 'Scope of the greenhouse gas protocol, 1 to 3.';
comment on column ops.emission_factors.method is 'For scope 2: location or market; else empty.';
comment on column ops.emission_factors.valid_from is 'First day.';
comment on column ops.emission_factors.valid_to is 'Day after the last.';
comment on column ops.emission_factors.units is 'Standard unit of the usage.';
comment on column ops.emission_factors.kg_co2e_per_unit is
  'Kilograms of CO2 equivalent for each unit.';
comment on column ops.emission_factors.source is 'Where the factor is from.';
comment on column ops.emission_factors.version is
  'Set of factors: never add emissions of several.';
comment on column ops.emission_factors.created_at is 'When the row was added.';
comment on table ops.site_overrides is
  'Facts of a site that the service does not send; yours to fill.';
comment on column ops.site_overrides.site_id is 'Site.';
comment on column ops.site_overrides.time_zone is 'IANA name; NULL: that of the company.';
comment on column ops.site_overrides.emission_region is 'Region that selects emission factors.';
comment on column ops.site_overrides.floor_area is 'Floor area of the site.';
comment on column ops.site_overrides.floor_area_units is 'For example sq ft.';
comment on table ops.unit_factors is
  'How units become the standard unit of their kind. Yours to add: what depends on the '
  'commodity, such as the heat content of gas.';
comment on column ops.unit_factors.units is 'Unit, as the service names it.';
comment on column ops.unit_factors.datasource_type is
  'Commodity; empty: every one without a row of its own.';
comment on column ops.unit_factors.dimension is
  'energy, power, apparent power, reactive power, volume, mass or length.';
comment on column ops.unit_factors.standard_units is 'Unit that views convert it to.';
comment on column ops.unit_factors.factor is 'Standard units in one unit.';
comment on column ops.unit_factors.source is 'Where the factor is from.';

--> statement-breakpoint
do $$
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
      when 'valid_from' then 'When the warehouse began to say this.'
      when 'valid_to' then 'When it stopped to, not included.'
      when 'ended_by_kind' then 'event or run; NULL where neither is known.'
      when 'ended_by' then 'Id of the event or run.'
      else coalesce((select col_description(kept.origin, o.attnum) from pg_attribute o
        where o.attrelid = kept.origin and o.attname = kept.attname), 'As in utility.') end);
  end loop;
end
$$;
