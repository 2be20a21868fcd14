CREATE INDEX "events_short" ON "metersync"."events" USING btree ("record_id") WHERE kind = 'interval' and outcome = 'applied' and intervals_found < interval_count;
--> statement-breakpoint
-- What was announced again after it was fetched is missing again until it was fetched again.
CREATE VIEW metersync.interval_ledger AS
with told as (
  select record_id as meter_id, range_agg(span) as announced, range_agg(span) filter (where outcome = 'pending') as waiting,
    sum(interval_count)::bigint as readings_told, sum(intervals_found)::bigint as readings_found,
    sum(greatest(interval_count - intervals_found, 0))::bigint as shortfall
  from (
    select *, tstzrange(range_start, range_end, '[]') as span from metersync.events
    where kind = 'interval' and outcome in ('pending', 'applied')
  ) announcement
  group by record_id
), ledger as (
  select meter_id, coalesce(announced, '{}') as announced,
    coalesce(fetched, '{}') - coalesce(waiting, '{}') as fetched,
    coalesce(readings_told, 0) as readings_told, coalesce(readings_found, 0) as readings_found,
    coalesce(shortfall, 0) as shortfall
  from told full join metersync.interval_fetches using (meter_id)
)
select meter_id, announced, fetched, announced - fetched as missing, readings_told, readings_found, shortfall from ledger;
--> statement-breakpoint
COMMENT ON VIEW metersync.interval_ledger IS 'What of each meter''s readings events announced, what was fetched since, and what is missing.';
COMMENT ON COLUMN metersync.interval_ledger.meter_id IS 'The meter.';
COMMENT ON COLUMN metersync.interval_ledger.announced IS 'All ranges that events announced, merged.';
COMMENT ON COLUMN metersync.interval_ledger.fetched IS 'Ranges that were fetched, less those that were announced again since.';
COMMENT ON COLUMN metersync.interval_ledger.missing IS 'announced less fetched.';
COMMENT ON COLUMN metersync.interval_ledger.readings_told IS 'Readings that the events told of; those in several ranges count each time.';
COMMENT ON COLUMN metersync.interval_ledger.readings_found IS 'Readings that the warehouse has in the ranges of the events, counted when each was fetched.';
COMMENT ON COLUMN metersync.interval_ledger.shortfall IS 'Readings that events told of and their ranges did not show.';
COMMENT ON COLUMN metersync.events.attempts IS 'How often it was looked at in vain for the reason in error_code.';
