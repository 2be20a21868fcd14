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
CREATE INDEX "contract_changes_seen" ON "ops"."contract_changes" USING btree ("seen_at");
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
CREATE TRIGGER note_contract_changes_of_new AFTER INSERT ON metersync.field_catalogue
  FOR EACH ROW EXECUTE FUNCTION metersync.note_contract_changes();
--> statement-breakpoint
CREATE TRIGGER note_contract_changes AFTER UPDATE ON metersync.field_catalogue
  FOR EACH ROW WHEN (new.types <> old.types or new.enum_values <> old.enum_values)
  EXECUTE FUNCTION metersync.note_contract_changes();
--> statement-breakpoint
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
COMMENT ON TABLE ops.contract_changes IS 'What the service was first seen to send: a resource, a field, a type of a field, a value of an enumeration.';
COMMENT ON COLUMN ops.contract_changes.id IS 'Number of the row.';
COMMENT ON COLUMN ops.contract_changes.seen_at IS 'When it was first seen.';
COMMENT ON COLUMN ops.contract_changes.resource IS 'documents, usageData and so on; events/TYPE for the payloads of events.';
COMMENT ON COLUMN ops.contract_changes.api_version IS 'Version of the API; webhooks for events.';
COMMENT ON COLUMN ops.contract_changes.path IS 'The field, as in ops.field_catalogue.';
COMMENT ON COLUMN ops.contract_changes.change IS 'resource, path, type or value.';
COMMENT ON COLUMN ops.contract_changes.value IS 'The type or the value; of a path the types it came with.';
COMMENT ON COLUMN ops.contract_changes.is_baseline IS 'Whether it was seen before a backfill had ended that began to read the resource: what came later is a change of the service''s.';
