-- Comments of columns that mean the same in every view. A view's own comment on its column takes
-- precedence. Views of other users are not changed.
do $$
declare
  silent record;
begin
  for silent in
    with common (name, comment) as (values
      ('company_id', 'Company.'),
      ('company', 'Name of the company.'),
      ('site_id', 'Site.'),
      ('site', 'Name of the site.'),
      ('meter_id', 'Meter.'),
      ('connection_id', 'Connection.'),
      ('bill_id', 'Bill: the document.'),
      ('datasource_type', 'Commodity, for example ELECTRICITY.'),
      ('commodity', 'The same as datasource_type.'),
      ('units', 'Unit of usage: its name in ops.unit_factors, however usage_units spells it.'),
      ('currency', 'Currency of the amounts. Never add amounts in different currencies.'),
      ('period', 'Days, half-open.'),
      ('first_day', 'First day of period.'),
      ('last_day', 'Last day of period.'),
      ('provider', 'Utility that sent the bill.'),
      ('account_number', 'Account number at the utility.'),
      ('invoice_id', 'The utility''s number of the bill.'),
      ('meter_number', 'Number of the meter at the utility.'),
      ('created', 'When the service created the record.'),
      ('updated', 'When the service last changed the record.'),
      ('api_version', 'Version of the API that it was read from, for example v2.2.'),
      ('deleted_at', 'When metersync found that it no longer exists; NULL while it exists. Values '
        'are kept.'),
      ('deleted_reason', 'event: a delete event; absent: complete, stable listings lack it; '
        'listed: among deleted ones; not_found: 404 of its own endpoint; '
        'document: its document is gone.'),
      ('granularity_seconds', 'Length in seconds.'),
      ('time_zone', 'IANA name of the zone of days and hours.'),
      ('time_zone_source', 'site (ops.site_overrides), company (ops.company_overrides) or default '
        '(UTC).'),
      ('bill_ids', 'Their documents.'),
      ('bills', 'Bills with days in the month, or without dates where month is NULL.'),
      ('coverage', 'Billed part of the days of all its meters.'),
      ('covered_seconds', 'Seconds that amounts cover; overlapping seconds count once.'),
      ('days_covered', 'Billed days.'),
      ('days_overlapped', 'Days that more than one bill covers.'),
      ('dimension', 'energy, power, volume, mass, …; unknown without a factor.'),
      ('estimated_readings', 'Estimated readings; those with the same start count once, if any of '
        'them is estimated.'),
      ('is_complete', 'Whether each day is billed once.'),
      ('is_late', 'Whether the next bill is overdue.'),
      ('max_kw', 'Highest mean power of a reading; the power of readings with the same start is '
        'added.'),
      ('month', 'First day of the month; NULL for amounts without dates.'),
      ('oldest_pending_at', 'Since when the first of them waits.'),
      ('pending_events', 'Events whose record waits for a read.'),
      ('period_days', 'Days in period.'),
      ('severity', 'error: numbers are wrong; warning: look at it; info: good to know.'),
      ('standard_units', 'Standard unit of the dimension (ops.unit_factors).'),
      ('standard_usage', 'Usage in standard_units.'),
      ('status', 'An open list: PENDING, CONNECTED, MFA_TOKEN_EXPIRED, …'),
      ('status_class', 'healthy, waiting, needs_customer, provider_problem, inactive; unknown '
        'where it is not documented.'),
      ('time_of_use', 'PEAK, OFF_PEAK, …'),
      ('unmetered_source', 'Stands for the meter of a record without one: commodity and account, '
        'else bill, else record.'),
      ('usage', 'Amount in usage_units; NULL above a hundred digits.'),
      ('usage_units', 'Unit, as the service names it.')
    ), named_fully (name) as (
      select unnest(array[
        'acknowledged_note', 'amount', 'audit_trail_url', 'billed_demand', 'billed_usage',
        'check_name', 'credits', 'customer_must_act', 'days_in_month', 'description', 'due_date',
        'file_name', 'flagged_status', 'is_demand', 'is_estimated', 'job_id',
        'last_event_applied_at', 'last_event_received_at', 'local_date', 'local_start', 'meters',
        'notes', 'open_balance', 'previous_balance', 'previous_payment', 'quantity',
        'quantity_units', 'rate', 'seconds', 'sentence', 'sites', 'source_type', 'tariff',
        'tax_charges', 'took', 'what_to_do'
      ])
    ), known (name, comment) as (
      select name, comment from common
      union all
      -- The name says it all.
      select name, upper(left(name, 1)) || replace(substr(name, 2), '_', ' ') || '.'
      from named_fully
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
