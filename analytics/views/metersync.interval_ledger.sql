-- A range that is announced again after it was fetched is missing until the next fetch.
create or replace view metersync.interval_ledger as
with announcements as (
  select
    record_id, outcome, interval_count, intervals_found,
    tstzrange(range_start, range_end, '[]') as span
  from metersync.journal
  where kind = 'interval'
    and outcome in ('pending', 'applied')
), announced_readings as (
  select
    record_id as meter_id,
    range_agg(span) as announced,
    range_agg(span) filter (where outcome = 'pending') as waiting,
    sum(interval_count)::bigint as readings_reported,
    sum(intervals_found)::bigint as readings_found,
    sum(greatest(interval_count - intervals_found, 0))::bigint as shortfall
  from announcements
  group by record_id
), ledger as (
  select
    meter_id,
    coalesce(announced, '{}') as announced,
    coalesce(fetched, '{}') - coalesce(waiting, '{}') as fetched,
    coalesce(readings_reported, 0) as readings_reported,
    coalesce(readings_found, 0) as readings_found,
    coalesce(shortfall, 0) as shortfall
  from announced_readings
    full join metersync.interval_fetches using (meter_id)
)
select
  meter_id, announced, fetched,
  announced - fetched as missing,
  readings_reported, readings_found, shortfall
from ledger;
comment on view metersync.interval_ledger is
  'Ranges of readings by meter: announced by events, fetched since, missing.';
comment on column metersync.interval_ledger.meter_id is 'The meter.';
comment on column metersync.interval_ledger.announced is
  'All ranges that events announced, merged.';
comment on column metersync.interval_ledger.fetched is
  'Ranges that were fetched and have not been announced again since.';
comment on column metersync.interval_ledger.missing is 'announced less fetched.';
comment on column metersync.interval_ledger.readings_reported is
  'Readings that the events reported; readings in several ranges count each time.';
comment on column metersync.interval_ledger.readings_found is
  'Readings that the warehouse has in the ranges of the events, counted when each was fetched.';
comment on column metersync.interval_ledger.shortfall is
  'Readings that events reported and the service did not show.';
