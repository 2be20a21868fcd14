-- Reads the days of one meter after another, so that the readings of each meter are found by their
-- key.
create or replace function metersync.days_to_check (company uuid)
returns table (
  company_id uuid, meter_id text, local_date date, units text, granularity_seconds integer,
  standard_usage numeric, standard_units text, readings integer, expected_readings numeric,
  covered_seconds integer, day_seconds integer, time_zone text, time_zone_source text
)
language sql stable rows 1000
set enable_hashjoin = off
set enable_mergejoin = off as $$
  select d.*
  from (select id from utility.meters where company_id = days_to_check.company offset 0) m
    cross join lateral (
      select
        d.company_id, d.meter_id, d.local_date, d.units, d.granularity_seconds, d.standard_usage,
        d.standard_units, d.readings, d.expected_readings, d.covered_seconds, d.day_seconds,
        d.time_zone, d.time_zone_source
      from analytics.interval_daily d
      where d.company_id = days_to_check.company
        and d.meter_id = m.id
      offset 0
    ) d
$$;
