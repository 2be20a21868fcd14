-- Several readings of one meter may share their start, length and unit, as those of a meter with
-- solar panels do: ordinal tells them apart. The key is built again for each month, which takes
-- about a second for a million readings. Older code names the former key in its writes and stops.
alter table utility.intervals
add column ordinal integer default 0 not null;

--> statement-breakpoint
alter table utility.intervals
drop constraint intervals_meter_id_start_at_granularity_seconds_usage_units_pk;

--> statement-breakpoint
alter table utility.intervals
add constraint intervals_pk primary key (
  meter_id,
  start_at,
  granularity_seconds,
  usage_units,
  ordinal
);

--> statement-breakpoint
comment on column utility.intervals.ordinal is
  'Distinguishes readings with the same start, length and unit; 0 for the first or only one.';

--> statement-breakpoint
-- A proved listing of a meter removes the readings that it lacks. More than the cap wait for a
-- decision, as ranges with counts.
alter table metersync.deletes
add column meter_id text,
add column usage_units text,
add column starts_from timestamp(6) with time zone,
add column starts_before timestamp(6) with time zone,
add column readings bigint;

--> statement-breakpoint
create index deletes_meter on metersync.deletes(meter_id)
where meter_id is not null;

--> statement-breakpoint
comment on column metersync.deletes.meter_id is 'Meter of a range of readings; otherwise NULL.';
comment on column metersync.deletes.usage_units is 'Unit of a range of readings.';
comment on column metersync.deletes.starts_from is 'When the first reading of the range starts.';
comment on column metersync.deletes.starts_before is 'When the last reading of the range ends.';
comment on column metersync.deletes.readings is 'How many readings of the range are absent.';

--> statement-breakpoint
-- A read that began before another one removed readings may write them again: it has to find out.
alter table metersync.interval_fetches
add column removed_at timestamp(6) with time zone;

--> statement-breakpoint
comment on column metersync.interval_fetches.removed_at is
  'When readings of the meter were last removed.';

--> statement-breakpoint
create table metersync.removed_readings (
  run_id uuid not null,
  meter_id text not null,
  start_at timestamp(6) with time zone not null,
  granularity_seconds integer not null,
  usage_units text not null,
  ordinal integer not null,
  usage numeric,
  quality text,
  updated timestamp(6) with time zone,
  synced_at timestamp(6) with time zone not null,
  unreadable jsonb
);

--> statement-breakpoint
create index removed_readings_run on metersync.removed_readings(run_id);

--> statement-breakpoint
comment on table metersync.removed_readings is
  'Readings that were removed because the service no longer lists them, so that metersync deletes '
  'undo can bring them back.';
comment on column metersync.removed_readings.run_id is 'Run of the note in metersync.deletes.';
comment on column metersync.removed_readings.meter_id is 'Meter.';
comment on column metersync.removed_readings.start_at is 'When the reading begins.';
comment on column metersync.removed_readings.granularity_seconds is 'Length in seconds.';
comment on column metersync.removed_readings.usage_units is 'Unit, as the service names it.';
comment on column metersync.removed_readings.ordinal is 'As in utility.intervals.';
comment on column metersync.removed_readings.usage is 'Exact amount in usage_units.';
comment on column metersync.removed_readings.quality is 'As in utility.intervals.';
comment on column metersync.removed_readings.updated is
  'When the service last changed it, where it says.';
comment on column metersync.removed_readings.synced_at is 'When the read began that brought it.';
comment on column metersync.removed_readings.unreadable is 'As in utility.intervals.';
