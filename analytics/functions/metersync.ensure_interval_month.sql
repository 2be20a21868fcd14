-- Creates the partition of intervals for the UTC month of a time. The partition is created
-- separately and then attached, so that nobody waits to read or write other months. The function
-- takes the same lock as ATTACH, so that sessions take turns. Only roles that may write to the
-- table can take this lock. Months outside metersync.interval_months() share two partitions. The
-- writer may call the function, which runs with its owner's rights.
create or replace function metersync.ensure_interval_month (at timestamptz) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
  first timestamp := date_trunc('month', at at time zone 'UTC');
  partition text := 'intervals_' || to_char(first, 'YYYY_MM');
begin
  if not at <@ metersync.interval_months()
    or to_regclass(format('utility.%I', partition)) is not null
  then
    return;
  end if;
  lock table utility.intervals in share update exclusive mode;
  if to_regclass(format('utility.%I', partition)) is not null then
    return;
  end if;
  execute format('create table utility.%I (like utility.intervals including all)', partition);
  execute format(
    'alter table utility.%I alter column meter_id set (n_distinct = -0.002)',
    partition
  );
  execute format(
    'alter table utility.intervals attach partition utility.%I for values from (%L) to (%L)',
    partition, first at time zone 'UTC', (first + interval '1 month') at time zone 'UTC');
end
$$;
revoke execute on function metersync.ensure_interval_month (timestamptz)
from public;
