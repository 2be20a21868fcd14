-- What a field of a record holds, or NULL where it is something else: an odd value must neither keep a record out nor
-- make a view fail. Immutable, as ISO dates and plain numbers read the same in every session.
CREATE FUNCTION metersync.uuid_of(value text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case when value ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' then value::uuid end
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
CREATE FUNCTION metersync.date_of(value text) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case
    when value !~ '^(?!0000)\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T ]|$)' then null
    when substr(value, 9, 2)::int <= 28 then substr(value, 1, 10)::date
    when substr(value, 9, 2)::int <= extract(day from (substr(value, 1, 7) || '-01')::date + interval '1 month - 1 day')
      then substr(value, 1, 10)::date
  end
$$;
--> statement-breakpoint
-- Postgres's own words (time zone "..." not recognized) say more than a violated constraint would.
CREATE FUNCTION metersync.is_time_zone(name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select name is null or timezone(name, timestamptz '2000-01-01 00:00Z') is not null
$$;
--> statement-breakpoint
CREATE SCHEMA "history";
--> statement-breakpoint
CREATE SCHEMA "ops";
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
	CONSTRAINT "data_issues_severity" CHECK (severity in ('error', 'warning', 'info'))
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
ALTER TABLE "utility"."documents" ADD COLUMN "revised_document_id" uuid GENERATED ALWAYS AS (metersync.uuid_of(raw ->> 'revisedDocumentId')) STORED;--> statement-breakpoint
ALTER TABLE "utility"."usage_data" ADD COLUMN "is_estimated" boolean GENERATED ALWAYS AS (metersync.boolean_of(raw ->> 'isEstimated')) STORED;--> statement-breakpoint
ALTER TABLE "utility"."usage_data" ADD COLUMN "exclusion" boolean GENERATED ALWAYS AS (metersync.boolean_of(raw ->> 'exclusion')) STORED;--> statement-breakpoint
ALTER TABLE "utility"."usage_data" ADD COLUMN "net_metering_type" text GENERATED ALWAYS AS (raw ->> 'netMeteringType') STORED;--> statement-breakpoint
ALTER TABLE "utility"."usage_data" ADD COLUMN "billed_demand" numeric GENERATED ALWAYS AS (metersync.number_of(raw ->> 'billedDemand')) STORED;--> statement-breakpoint
CREATE INDEX "history_companies_id" ON "history"."companies" USING btree ("id","valid_to");--> statement-breakpoint
CREATE INDEX "history_connections_id" ON "history"."connections" USING btree ("id","valid_to");--> statement-breakpoint
CREATE INDEX "history_documents_id" ON "history"."documents" USING btree ("id","valid_to");--> statement-breakpoint
CREATE INDEX "history_documents_company" ON "history"."documents" USING btree ("company_id");--> statement-breakpoint
CREATE INDEX "history_meters_id" ON "history"."meters" USING btree ("id","valid_to");--> statement-breakpoint
CREATE INDEX "history_sites_id" ON "history"."sites" USING btree ("id","valid_to");--> statement-breakpoint
CREATE INDEX "history_usage_data_id" ON "history"."usage_data" USING btree ("id","valid_to");--> statement-breakpoint
CREATE UNIQUE INDEX "data_issues_open" ON "ops"."data_issues" USING btree ("check_name","entity_type","entity_id","subject") WHERE closed_at is null;--> statement-breakpoint
CREATE INDEX "data_issues_company" ON "ops"."data_issues" USING btree ("company_id","check_name");--> statement-breakpoint
CREATE INDEX "documents_revised" ON "utility"."documents" USING btree ("company_id") WHERE revised_document_id is not null;--> statement-breakpoint
CREATE INDEX "intervals_start" ON "utility"."intervals" USING brin ("start_at");
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
      select e.id from metersync.events e where e.record_id = o.%I::text
        and (e.outcome = 'pending' or e.recorded_at >= now()) order by e.recorded_at desc limit 1)$sql$, TG_ARGV[0]);
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
COMMENT ON SCHEMA history IS 'Earlier states of the records of utility, one table a resource: each row is what utility said from valid_from until valid_to. The state of now is in utility alone.';
--> statement-breakpoint
COMMENT ON SCHEMA ops IS 'What analysts may see of the pipeline, and what you tell it: overrides, factors, issues of the data.';
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
--> statement-breakpoint
COMMENT ON COLUMN utility.documents.revised_document_id IS 'revisedDocumentId of raw: the bill that supersedes this one.';
COMMENT ON COLUMN utility.usage_data.is_estimated IS 'isEstimated of raw.';
COMMENT ON COLUMN utility.usage_data.exclusion IS 'exclusion of raw: the usage is subtracted in sums.';
COMMENT ON COLUMN utility.usage_data.net_metering_type IS 'netMeteringType of raw, for example EXPORT.';
COMMENT ON COLUMN utility.usage_data.billed_demand IS 'billedDemand of raw.';
COMMENT ON TABLE ops.site_overrides IS 'What the service does not tell of a site; yours to fill.';
COMMENT ON COLUMN ops.site_overrides.site_id IS 'Site.';
COMMENT ON COLUMN ops.site_overrides.time_zone IS 'IANA name, for example America/New_York; NULL: that of the company.';
COMMENT ON COLUMN ops.site_overrides.emission_region IS 'Region by which emission factors are looked up.';
COMMENT ON COLUMN ops.site_overrides.floor_area IS 'Floor area, in floor_area_units.';
COMMENT ON COLUMN ops.site_overrides.floor_area_units IS 'For example m2 or ft2.';
COMMENT ON TABLE ops.company_overrides IS 'The same for every site of a company that has none of its own; yours to fill.';
COMMENT ON COLUMN ops.company_overrides.company_id IS 'Company.';
COMMENT ON COLUMN ops.company_overrides.time_zone IS 'IANA name; NULL: UTC.';
COMMENT ON COLUMN ops.company_overrides.emission_region IS 'Region by which emission factors are looked up.';
COMMENT ON TABLE ops.unit_factors IS 'How units become the standard unit of their kind: amount × factor. Add a row with a datasource_type for what depends on the commodity, such as the heat content of gas (CCF of GAS into kWh).';
COMMENT ON COLUMN ops.unit_factors.units IS 'Unit, as the service names it.';
COMMENT ON COLUMN ops.unit_factors.datasource_type IS 'Commodity that the row is for; empty: every one without a row of its own.';
COMMENT ON COLUMN ops.unit_factors.dimension IS 'energy, power, apparent power, reactive power, volume, mass or length.';
COMMENT ON COLUMN ops.unit_factors.standard_units IS 'Unit that amounts become.';
COMMENT ON COLUMN ops.unit_factors.factor IS 'Standard units in one unit.';
COMMENT ON COLUMN ops.unit_factors.source IS 'Where the factor is from.';
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
COMMENT ON COLUMN ops.data_issues.closed_at IS 'When a check no longer found it; NULL while it is open.';
