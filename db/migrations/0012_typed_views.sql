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
-- Analysts call these through the views and may not look into schema metersync: names are resolved here (begin atomic).
-- A number, be it one or the text of one.
CREATE FUNCTION metersync.numeric_of(value jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  select case jsonb_typeof(value) when 'number' then (value #>> '{}')::numeric
    when 'string' then metersync.number_of(value #>> '{}') end;
END;
--> statement-breakpoint
-- A time of an ISO 8601 text; one without a zone is of the given zone, whatever the session's is. NULL when it is none.
CREATE FUNCTION metersync.time_of(value text, zone text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  select case
    when metersync.date_of(value) is null or substr(value, 11)
      !~ '^[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[-+](0\d|1[0-4])(:?[0-5]\d)?)?$' then null
    when substr(value, 11) ~ '[-Z+]' then value::timestamptz
    else value::timestamp at time zone zone
  end;
END;
--> statement-breakpoint
COMMENT ON TABLE metersync.typed_views IS 'The typed views of schema analytics, made from the field catalogue.';
COMMENT ON COLUMN metersync.typed_views.name IS 'Name of the view.';
COMMENT ON COLUMN metersync.typed_views.resource IS 'Resource whose records it shows.';
COMMENT ON COLUMN metersync.typed_views.path IS 'What of them it shows, as in ops.field_catalogue; empty: the records themselves.';
COMMENT ON COLUMN metersync.typed_views.definition IS 'Digest of what it was made by.';
COMMENT ON COLUMN metersync.typed_views.made_at IS 'When it was last made.';
COMMENT ON TABLE metersync.typed_columns IS 'Columns of the typed views: a name, once given, stays with its field.';
COMMENT ON COLUMN metersync.typed_columns.view_name IS 'The view.';
COMMENT ON COLUMN metersync.typed_columns.position IS 'Order in which the columns came.';
COMMENT ON COLUMN metersync.typed_columns.name IS 'Name of the column.';
COMMENT ON COLUMN metersync.typed_columns.path IS 'The field, as in ops.field_catalogue.';
COMMENT ON COLUMN metersync.typed_columns.type IS 'Type that holds every value that was seen.';
