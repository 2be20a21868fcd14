-- How many rows a look for one meter finds in a month. Counting what is there would say as many as a meter with readings has,
-- for each meter, and most have none: reading whole months would look cheaper than asking for the meters of a company. The
-- fraction stands for some 500, between the 744 hours and the 30 days that a month has, and grows with the table.
CREATE OR REPLACE FUNCTION metersync.ensure_interval_month(at timestamptz) RETURNS void LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
  execute format('alter table utility.%I alter column meter_id set (n_distinct = -0.002)', partition);
  execute format(
    'alter table utility.intervals attach partition utility.%I for values from (%L) to (%L)',
    partition, first at time zone 'UTC', (first + interval '1 month') at time zone 'UTC');
end
$$;
--> statement-breakpoint
DO $$
declare
  partition regclass;
begin
  for partition in select inhrelid from pg_inherits where inhparent = 'utility.intervals'::regclass loop
    execute format('alter table %s alter column meter_id set (n_distinct = -0.002)', partition);
  end loop;
end
$$;
--> statement-breakpoint
ALTER TABLE utility.intervals ALTER COLUMN meter_id SET (n_distinct_inherited = -0.002);
