-- The service's timestamps have no zone (seed 2): connections of the warehouse set TimeZone to SERVICE_TIME_ZONE,
-- so a cast reads them. Words that Postgres would take ('now', 'infinity') are refused; the error is 22007.
CREATE FUNCTION metersync.read_time(value text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  select case
    when value ~ '^\d{4}-\d\d-\d\d' then value::timestamptz
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
-- Makes the partition of intervals for the UTC month that holds the given time. It is made apart and attached:
-- ATTACH takes a lock that lets readers and writers of the other months go on.
CREATE FUNCTION metersync.ensure_interval_month(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
declare
  first timestamp := date_trunc('month', at at time zone 'UTC');
  partition text := 'intervals_' || to_char(first, 'YYYY_MM');
begin
  if to_regclass(format('utility.%I', partition)) is not null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtext('metersync.ensure_interval_month'));
  if to_regclass(format('utility.%I', partition)) is not null then
    return;
  end if;
  execute format('create table utility.%I (like utility.intervals including all)', partition);
  execute format(
    'alter table utility.intervals attach partition utility.%I for values from (%L) to (%L)',
    partition, first at time zone 'UTC', (first + interval '1 month') at time zone 'UTC');
end
$$;
--> statement-breakpoint
INSERT INTO metersync.catch_ups (kind) VALUES ('connections'), ('documents'), ('intervals');
--> statement-breakpoint
COMMENT ON SCHEMA utility IS 'Current state of every resource, as the service sent it.';
COMMENT ON SCHEMA metersync IS 'The pipeline''s own state: the journal of events, runs, what was refused.';
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
      ('deleted_reason', 'event: a delete event said so; absent: a complete, stable listing no longer had it; not_found: its own endpoint answered 404; document: its document is gone.')
    ) as c (column_name, comment_text)
    cross join (values ('companies'), ('sites'), ('connections'), ('documents'), ('usage_data'), ('meters')) as t (relname)
  loop
    execute format('comment on column utility.%I.%I is %L', described.relname, described.column_name, described.comment_text);
  end loop;
end
$$;
--> statement-breakpoint
COMMENT ON TABLE utility.companies IS 'Companies of the organization.';
COMMENT ON COLUMN utility.companies.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.companies.external_id IS 'Identifier chosen by the customer.';
COMMENT ON COLUMN utility.companies.public_id IS 'The service''s public identifier; webhook events tell it.';
COMMENT ON COLUMN utility.companies.name IS 'Name of the company.';
COMMENT ON TABLE utility.sites IS 'Sites of companies.';
COMMENT ON COLUMN utility.sites.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.sites.company_id IS 'Company that the site belongs to.';
COMMENT ON COLUMN utility.sites.name IS 'Name of the site.';
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
COMMENT ON TABLE utility.documents IS 'Utility bills.';
COMMENT ON COLUMN utility.documents.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.documents.company_id IS 'Company that the bill belongs to.';
COMMENT ON COLUMN utility.documents.site_id IS 'Site that an event or the record names.';
COMMENT ON COLUMN utility.documents.created IS 'When the service created the record.';
COMMENT ON COLUMN utility.documents.updated IS 'When the service last changed the record: the newest that an event or a read told.';
COMMENT ON COLUMN utility.documents.raw_updated IS 'updated of the state in raw; older than updated while an event waits for the record to be read again.';
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
COMMENT ON TABLE utility.meters IS 'Meters.';
COMMENT ON COLUMN utility.meters.id IS 'The service''s identifier.';
COMMENT ON COLUMN utility.meters.company_id IS 'Company in whose listing the meter stands.';
COMMENT ON COLUMN utility.meters.site_id IS 'Site of the meter.';
COMMENT ON COLUMN utility.meters.account_id IS 'Account at the provider.';
COMMENT ON COLUMN utility.meters.datasource_type IS 'Commodity, for example ELECTRICITY.';
COMMENT ON TABLE utility.intervals IS 'Interval readings, partitioned by month (UTC) of start_at.';
COMMENT ON COLUMN utility.intervals.meter_id IS 'Meter.';
COMMENT ON COLUMN utility.intervals.start_at IS 'Start of the interval.';
COMMENT ON COLUMN utility.intervals.granularity_seconds IS 'Length of the interval, in seconds.';
COMMENT ON COLUMN utility.intervals.usage_units IS 'Unit, as the service names it.';
COMMENT ON COLUMN utility.intervals.usage IS 'Amount, exact, in usage_units.';
COMMENT ON COLUMN utility.intervals.quality IS 'Quality, as the service names it: an open list.';
COMMENT ON COLUMN utility.intervals.updated IS 'When the service last changed the reading, where it says so.';
COMMENT ON COLUMN utility.intervals.synced_at IS 'When the read began that brought this row.';
--> statement-breakpoint
COMMENT ON TABLE metersync.events IS 'The journal: every verified event once, by its id, with what became of it.';
COMMENT ON COLUMN metersync.events.id IS 'Message id of the delivery: the same on every attempt.';
COMMENT ON COLUMN metersync.events.type IS 'Type of the event; told by its shape where the payload names none; unknown where neither tells.';
COMMENT ON COLUMN metersync.events.kind IS 'connection, document, interval or ignored.';
COMMENT ON COLUMN metersync.events.record_id IS 'Connection, document or meter that the event is about.';
COMMENT ON COLUMN metersync.events.company_id IS 'Company that the payload names.';
COMMENT ON COLUMN metersync.events.occurred_at IS 'updated of the record in the payload.';
COMMENT ON COLUMN metersync.events.range_start IS 'Start of a synced interval range.';
COMMENT ON COLUMN metersync.events.range_end IS 'End of a synced interval range.';
COMMENT ON COLUMN metersync.events.received_at IS 'When the receiver had the request (its clock).';
COMMENT ON COLUMN metersync.events.recorded_at IS 'When the event entered the journal (the warehouse''s clock).';
COMMENT ON COLUMN metersync.events.payload IS 'The payload; NULL where Postgres cannot hold it: then body has its bytes.';
COMMENT ON COLUMN metersync.events.body IS 'The exact bytes of a payload that jsonb cannot hold.';
COMMENT ON COLUMN metersync.events.outcome IS 'pending: its record waits to be read again; applied; superseded: a newer state was already known; ignored: unknown type; dead: it cannot be applied, see error.';
COMMENT ON COLUMN metersync.events.applied_at IS 'When its effect was in the warehouse.';
COMMENT ON COLUMN metersync.events.error IS 'Why it is dead, or why it still waits.';
COMMENT ON COLUMN metersync.events.attempts IS 'How often its record was read without showing the event''s state.';
COMMENT ON COLUMN metersync.events.next_attempt_at IS 'Not read again before this time.';
COMMENT ON TABLE metersync.catch_ups IS 'Whether the catch-up workflow of each kind is awake.';
COMMENT ON COLUMN metersync.catch_ups.kind IS 'connections, documents or intervals.';
COMMENT ON COLUMN metersync.catch_ups.awake IS 'True while the workflow runs; who records an event wakes it when false.';
COMMENT ON TABLE metersync.runs IS 'Backfills: one row for the run, one for each company and resource in it.';
COMMENT ON COLUMN metersync.runs.run_id IS 'The run.';
COMMENT ON COLUMN metersync.runs.company_id IS 'NULL for the row of the run itself and for its list of companies.';
COMMENT ON COLUMN metersync.runs.resource IS 'NULL for the row of the run itself.';
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
COMMENT ON COLUMN metersync.runs.error IS 'What went wrong.';
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
COMMENT ON TABLE metersync.rejected_records IS 'Records of the API that Postgres refused (NUL, impossible date, overflow); their neighbours were written.';
COMMENT ON COLUMN metersync.rejected_records.resource IS 'Resource.';
COMMENT ON COLUMN metersync.rejected_records.record_id IS 'Id of the record, or a hash of its text where it has none.';
COMMENT ON COLUMN metersync.rejected_records.company_id IS 'Company in whose listing it stood.';
COMMENT ON COLUMN metersync.rejected_records.error IS 'Postgres''s words.';
COMMENT ON COLUMN metersync.rejected_records.record IS 'The record''s text, with each \u0000 as the service sent it.';
COMMENT ON COLUMN metersync.rejected_records.rejected_at IS 'When.';
