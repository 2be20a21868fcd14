-- Functions named *_to_check gather the data of one company for its checks. Their cost depends only
-- on the company, because each row is looked up by an index, whatever the statistics of the tables
-- say. They join only tables, each by its key. Checks join the gathered rows, which are few.
create or replace function metersync.usage_to_check (company uuid)
returns table (
  company_id uuid, site_id uuid, usage_id uuid, bill_id uuid, meter_id text, start_date date,
  end_date date, period daterange, period_days integer, date_quality text,
  counted_days datemultirange, may_overlap boolean, usage numeric, usage_units text, units text,
  standard_usage numeric, standard_units text, dimension text, is_estimated boolean,
  is_excluded boolean, net_metering_type text, electricity_type text
)
language sql stable rows 1000
set enable_hashjoin = off
set enable_mergejoin = off as $$
  select
    u.company_id, u.site_id, u.usage_id, u.bill_id, u.meter_id, u.start_date, u.end_date, u.period,
    u.period_days, u.date_quality, u.counted_days, u.may_overlap, u.usage, u.usage_units, u.units,
    u.standard_usage, u.standard_units, u.dimension, u.is_estimated, u.is_excluded,
    u.net_metering_type, u.electricity_type
  from analytics.usage u
  where u.company_id = usage_to_check.company
$$;
