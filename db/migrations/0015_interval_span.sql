-- Readings of any year may come, and a partition of each of their months would take more locks than a server has. Months within
-- this span have one each; what lies before and after it stands in two partitions of their own.
CREATE FUNCTION metersync.interval_months() RETURNS tstzrange LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select '[2000-01-01 00:00:00+00,2050-01-01 00:00:00+00)'::tstzrange
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION metersync.ensure_interval_month(at timestamptz) RETURNS void LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
declare
  first timestamp := date_trunc('month', at at time zone 'UTC');
  partition text := 'intervals_' || to_char(first, 'YYYY_MM');
begin
  if not at <@ metersync.interval_months() or to_regclass(format('utility.%I', partition)) is not null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtext('metersync.ensure_interval_month'));
  if to_regclass(format('utility.%I', partition)) is not null then
    return;
  end if;
  execute format('create table utility.%I (like utility.intervals including all)', partition);
  execute format('alter table utility.%I alter column meter_id set (n_distinct = -0.002)', partition);
  execute format(
    'alter table utility.intervals attach partition utility.%I for values from (%L) to (%L)',
    partition, first at time zone 'UTC', (first + interval '1 month') at time zone 'UTC');
end
$$;
--> statement-breakpoint
-- No default partition: making a month would have to wait for everybody who reads it. Months outside the span that were made
-- before are emptied into the two.
DO $$
declare
  span constant tstzrange := metersync.interval_months();
  months regclass[] := array(
    select inhrelid::regclass from pg_inherits join pg_class on oid = inhrelid
    where inhparent = 'utility.intervals'::regclass and relname ~ '^intervals_\d+_\d\d$'
      and not substring(relname from '\d+')::int between extract(year from lower(span) at time zone 'UTC')
        and extract(year from upper(span) at time zone 'UTC') - 1);
  month regclass;
begin
  foreach month in array months loop
    execute format('alter table utility.intervals detach partition %s', month);
  end loop;
  create table utility.intervals_before_2000 (like utility.intervals including all);
  create table utility.intervals_from_2050 (like utility.intervals including all);
  alter table utility.intervals_before_2000 alter column meter_id set (n_distinct = -0.002);
  alter table utility.intervals_from_2050 alter column meter_id set (n_distinct = -0.002);
  execute format('alter table utility.intervals attach partition utility.intervals_before_2000 for values from (minvalue) to (%L)',
    lower(span));
  execute format('alter table utility.intervals attach partition utility.intervals_from_2050 for values from (%L) to (maxvalue)',
    upper(span));
  foreach month in array months loop
    execute format('insert into utility.intervals select * from %s', month);
    execute format('drop table %s', month);
  end loop;
end
$$;
--> statement-breakpoint
COMMENT ON TABLE utility.intervals IS 'Interval readings, partitioned by month (UTC) of start_at from 2000 to 2049; earlier and later ones stand in a partition each.';
