-- Comments of columns that mean the same in every view. A view's own comment on its column takes
-- precedence. Views of other users are not changed.
do $$
declare
  silent record;
begin
  for silent in
    with known (name, comment) as (values
      ('bill_id', 'id of the document.'),
      ('datasource_type', 'Commodity, for example ELECTRICITY.'),
      ('commodity', 'The same as datasource_type.'),
      ('units', 'Unit of usage, as ops.unit_factors names it.'),
      ('currency', 'Never add amounts in different currencies.'),
      ('period', 'Its days.'),
      ('first_day', 'First day of period.'),
      ('last_day', 'Last day of period.'),
      ('provider', 'Utility that sent the bill.'),
      ('account_number', 'Account number at the utility.'),
      ('invoice_id', 'The utility''s number of the bill.'),
      ('meter_number', 'Number of the meter at the utility.'),
      ('updated', 'When the service last changed it.'),
      ('api_version', 'Version of the API, for example v2.2.'),
      ('deleted_at', 'When metersync found it gone; NULL while it exists.'),
      ('deleted_reason', 'event, absent (complete listings lack it), listed (as deleted), '
        'not_found (404) or document (its document is gone).'),
      ('granularity_seconds', 'Length.'),
      ('time_zone', 'IANA name of the zone of days and hours.'),
      ('time_zone_source', 'site (ops.site_overrides), company (ops.company_overrides) or default '
        '(UTC).'),
      ('bill_ids', 'ids of the documents.'),
      ('bills', 'Bills with days in the month.'),
      ('coverage', 'Billed part of the days of all its meters.'),
      ('covered_seconds', 'Seconds that amounts cover; overlapping seconds count once.'),
      ('days_covered', 'Billed days.'),
      ('days_overlapped', 'Days that more than one bill covers.'),
      ('dimension', 'energy, power, volume, mass, …; unknown without a factor.'),
      ('estimated_readings', 'Estimated readings; those with the same start count once.'),
      ('is_complete', 'Whether each day is billed once.'),
      ('is_late', 'Whether the next bill is overdue.'),
      ('max_kw', 'Highest mean power of readings; those with the same start are added.'),
      ('month', 'First day of the month; NULL for amounts without dates.'),
      ('oldest_pending_at', 'Since when the oldest of them waits.'),
      ('pending_events', 'Events whose record waits for a read.'),
      ('severity', 'error (numbers are wrong), warning (look at it) or info.'),
      ('standard_units', 'Standard unit of the dimension.'),
      ('status', 'PENDING, CONNECTED, MFA_TOKEN_EXPIRED, …'),
      ('status_class', 'healthy, waiting, needs_customer, provider_problem, inactive or unknown.'),
      ('time_of_use', 'PEAK, OFF_PEAK, …'),
      ('unmetered_source', 'What stands for the meter of a record without one: commodity and '
        'account, bill, or record.'),
      ('usage', 'Amount in usage_units.'),
      ('usage_units', 'Unit, as the service names it.')
    )
    select c.oid::regclass as relation, a.attname, known.comment
    from pg_class c
      join pg_attribute a on a.attrelid = c.oid
      join known on known.name = a.attname
    where c.relkind = 'v'
      and c.relnamespace in ('analytics'::regnamespace, 'ops'::regnamespace)
      and pg_has_role(c.relowner, 'usage')
      and a.attnum > 0
      and col_description(c.oid, a.attnum) is null
  loop
    execute format(
      'comment on column %s.%I is %L',
      silent.relation,
      silent.attname,
      silent.comment
    );
  end loop;
end
$$;
select metersync.copy_comments(
  ('analytics.' || months)::regclass,
  ('metersync.' || months || suffix)::regclass
)
from unnest(array['monthly_usage', 'monthly_cost']) months, unnest(array['', '_now']) suffix;
select
  metersync.copy_comments(
    'analytics.connections_needing_attention',
    'metersync.unwell_connections'
  ),
  metersync.copy_comments('analytics.usage', 'metersync.counted_usage');
select
  metersync.copy_comments(('utility.' || name)::regclass, 'metersync.earlier_states'),
  metersync.copy_comments(('utility.' || name)::regclass, ('history.' || name)::regclass),
  metersync.copy_comments('metersync.earlier_states', ('history.' || name)::regclass)
from unnest(array['companies', 'sites', 'connections', 'documents', 'usage_data', 'meters']) name;
