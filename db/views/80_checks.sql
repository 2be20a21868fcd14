-- What is looked for. A check finds rows of evidence; ops.refresh_data_issues opens and closes issues by them.
create or replace view ops.data_issue_checks as
select * from (values
  ('bill_gap', 'bills', 'meter', 'warning', 'Days between two bills of a meter that no bill is for.'),
  ('bill_overlap', 'bills', 'meter', 'warning', 'Days that more than one bill of a meter is for; the one day that a bill may share with the next does not count.'),
  ('duplicate_bill', 'bills', 'document', 'error', 'A bill like an earlier one, which is neither superseded nor deleted: the same meters, days and cost, or the same account, provider and bill date.'),
  ('unusual_period', 'bills', 'document', 'warning', 'A bill for more than 65 days, or for less than 20, where the account''s bills usually are not.'),
  ('future_period', 'bills', 'document', 'warning', 'A bill whose period ends in the future.'),
  ('amount_mismatch', 'bills', 'document', 'error', 'Charges of the period that differ from the sum of the bill''s lines by more than 0.01.'),
  ('usage_mismatch', 'bills', 'document', 'error', 'Usage that stands on the document and differs from the sum of its usage records.'),
  ('usage_spike', 'bills', 'document', 'warning', 'Use a day at least three times the highest of the four years before, whose highest tenth is left out; of meters with five bills before.'),
  ('hidden_estimate', 'bills', 'meter', 'warning', 'Three or more bills in a row with the very same use a day.'),
  ('zero_usage_with_cost', 'bills', 'document', 'info', 'A bill that costs something though nothing was used.'),
  ('negative_usage', 'bills', 'usage', 'warning', 'Negative usage that is neither exported nor excluded, on a bill without credits.'),
  ('unit_changed', 'bills', 'usage', 'warning', 'Usage in another unit than on the meter''s bill before.'),
  ('currency_changed', 'bills', 'document', 'error', 'A bill in another currency than the account''s bill before.'),
  ('bad_dates', 'bills', 'usage', 'warning', 'Usage without dates, whose end is its start (so is an unknown end sent), or whose end is before its start.'),
  ('late_bill', 'bills', 'meter', 'warning', 'No bill for more than one and a half times the usual days between the meter''s bills; of meters with three.'),
  ('orphan', 'bills', 'usage', 'error', 'Usage whose document or meter is not there.'),
  ('unknown_unit', 'bills', 'meter', 'info', 'Usage in a unit without a factor in ops.unit_factors: it cannot be added to others.'),
  ('unknown_commodity', 'bills', 'meter', 'info', 'A commodity that is none of those documented.'),
  ('unknown_status', 'connections', 'connection', 'info', 'A status that is none of those documented.'),
  ('unhealthy_connection', 'connections', 'connection', 'error', 'A connection that has collected nothing for more than 7 days.'),
  ('interval_coverage', 'intervals', 'meter', 'warning', 'Readings that cover less than 95 % of a month, between the meter''s first and last.'),
  ('clock_change', 'intervals', 'meter', 'warning', 'A day of 23 or 25 hours with the readings of 24: their times may be local, or of another time zone.'),
  ('interval_bill_mismatch', 'intervals', 'usage', 'warning', 'Readings that cover all days of a bill, and differ from its usage by more than 2 %.'),
  ('unknown_quality', 'intervals', 'meter', 'info', 'A quality of readings that is none of the standard list, nor known as one of them.')
) as checks (check_name, run_with, entity_type, severity, what);
comment on view ops.data_issue_checks is 'The checks whose findings ops.data_issues holds.';
select metersync.comment_columns('ops.data_issue_checks', '{
  "check_name": "Name.",
  "run_with": "bills and connections: after each backfill, and after each reconcile of companies with changes; intervals: after each backfill.",
  "entity_type": "What an issue is of: document, usage, meter or connection.",
  "severity": "error: numbers are wrong; warning: look at it; info: good to know.",
  "what": "What it finds."
}');

-- Checks over bills and usage of some companies: each is one select, over usage and bills that were worked out once.
create or replace function metersync.find_bill_issues(companies uuid[], today date) returns table (
  check_name text, company_id uuid, entity_id text, subject text, evidence jsonb
) language sql stable as $$
  with usage as materialized (
    select u.*, u.dimension in ('power', 'apparent power', 'reactive power') as is_demand
    from analytics.usage u where u.company_id = any (companies)
  ), bills as materialized (
    select * from analytics.bills b where b.company_id = any (companies)
  ), rates as materialized (
    select u.company_id, u.meter_id, u.bill_id, u.standard_units, lower(u.period) as first_day,
      sum(u.standard_usage) / u.period_days as per_day
    from usage u
    where u.meter_id is not null and u.period_days > 1 and u.is_excluded is not true and not u.is_demand
      and u.standard_usage is not null
    group by u.company_id, u.meter_id, u.bill_id, u.standard_units, u.period, u.period_days
  )
  select 'bill_gap', g.company_id, g.meter_id, lower(gap)::text,
    jsonb_build_object('from', lower(gap), 'until', upper(gap), 'days', upper(gap) - lower(gap))
  from (
    select u.company_id, u.meter_id, datemultirange(range_merge(range_agg(u.period))) - range_agg(u.period) as gaps
    from usage u where u.meter_id is not null and u.period is not null group by u.company_id, u.meter_id
  ) g cross join lateral unnest(g.gaps) as gap
  union all
  select 'bill_overlap', u.company_id, u.meter_id, lower(part)::text,
    jsonb_build_object('from', lower(part), 'until', upper(part), 'days', upper(part) - lower(part), 'older_bill', u.bill_id)
  from usage u cross join lateral unnest(datemultirange(u.period) - u.counted_days) as part
  where u.may_overlap and u.meter_id is not null
  union all
  select 'duplicate_bill', b.company_id, b.bill_id::text, '', jsonb_build_object('same_as', b.original, 'by', b.by)
  from (
    select b.company_id, b.bill_id, 'meters, days and cost' as by, first_value(b.bill_id) over (
        partition by b.company_id, b.currency, b.cost, u.told order by b.created, b.bill_id) as original
    from bills b join (
      select u.company_id, u.bill_id, string_agg(concat(u.meter_id, u.period, u.usage), ',' order by u.meter_id, u.period, u.usage) as told
      from usage u where u.bill_id is not null group by u.company_id, u.bill_id
    ) u on u.bill_id = b.bill_id
    union all
    select b.company_id, b.bill_id, 'account, provider and bill date', first_value(b.bill_id) over (
        partition by b.company_id, b.account_number, b.provider, b.bill_date order by b.created, b.bill_id)
    from bills b where b.account_number is not null and b.bill_date is not null
  ) b where b.original <> b.bill_id
  union all
  select 'unusual_period', b.company_id, b.bill_id::text, '', jsonb_build_object('days', b.period_days, 'usual_days', m.days)
  from bills b join (
    select b.company_id, b.account_number, percentile_disc(0.5) within group (order by b.period_days) as days
    from bills b where b.account_number is not null and b.boundary_rule <> 'one_day'
    group by b.company_id, b.account_number having count(*) >= 3
  ) m on m.company_id = b.company_id and m.account_number = b.account_number
  where b.boundary_rule <> 'one_day'
    and (b.period_days > greatest(65, 1.5 * m.days) or b.period_days < least(20, 0.5 * m.days))
  union all
  select 'future_period', b.company_id, b.bill_id::text, '', jsonb_build_object('period_end', b.period_end)
  from bills b where b.period_end > today
  union all
  select 'amount_mismatch', b.company_id, b.bill_id::text, '',
    jsonb_build_object('current_charges', b.current_charges, 'lines', l.amount, 'currency', b.currency)
  from bills b join utility.documents d on d.id = b.bill_id
    cross join lateral (
      select sum(metersync.number_of(item ->> 'totalCharge')) as amount
      from jsonb_array_elements(metersync.elements(d.raw -> 'lineItems')) as item
      where coalesce(nullif(item ->> 'billingPeriod', ''), 'CURRENT') = 'CURRENT'
    ) l
  where abs(b.current_charges - l.amount) > 0.01
  union all
  select 'usage_mismatch', b.company_id, b.bill_id::text, coalesce(told.units, ''),
    jsonb_build_object('on_document', told.usage, 'in_records', listed.usage, 'units', told.units)
  from bills b join utility.documents d on d.id = b.bill_id
    cross join lateral (
      select item ->> 'usageUnits' as units, sum(metersync.number_of(item ->> 'usage')) as usage
      from jsonb_array_elements(metersync.elements(d.raw -> 'usageData')) as item group by 1
    ) told
    left join lateral (
      select sum(r.usage) as usage from utility.usage_data r
      where r.document_id = b.bill_id and r.deleted_at is null and r.usage_units is not distinct from told.units
    ) listed on true
  where told.usage is not null and abs(told.usage - listed.usage) > 0.001 is not false
  union all
  select 'usage_spike', r.company_id, r.bill_id::text, r.meter_id, jsonb_build_object(
    'per_day', round(r.per_day, 3), 'usual_highest', round(h.highest, 3), 'units', r.standard_units, 'bills_before', h.bills)
  from (
    select r.*, array_agg(r.per_day) over (partition by r.company_id, r.meter_id, r.standard_units order by r.first_day
      range between interval '4 years' preceding and interval '1 day' preceding) as before
    from rates r
  ) r cross join lateral (
    select percentile_disc(0.9) within group (order by rate) as highest, count(*) as bills from unnest(r.before) as rate
  ) h
  where h.bills >= 5 and h.highest > 0 and r.per_day >= 3 * h.highest and r.bill_id is not null
  union all
  select 'hidden_estimate', s.company_id, s.meter_id, min(s.first_day)::text, jsonb_build_object('per_day', round(s.per_day, 3),
    'units', s.standard_units, 'bills', array_agg(s.bill_id order by s.first_day))
  from (
    select r.*, count(*) filter (where r.changed) over (partition by r.company_id, r.meter_id, r.standard_units
      order by r.first_day, r.bill_id) as stretch
    from (
      select r.*, r.per_day is distinct from lag(r.per_day) over (
        partition by r.company_id, r.meter_id, r.standard_units order by r.first_day, r.bill_id) as changed
      from rates r
    ) r
  ) s where s.per_day <> 0
  group by s.company_id, s.meter_id, s.standard_units, s.stretch, s.per_day having count(distinct s.bill_id) >= 3
  union all
  select 'zero_usage_with_cost', b.company_id, b.bill_id::text, '', jsonb_build_object('cost', b.cost, 'currency', b.currency)
  from bills b
  where b.cost > 0 and (select sum(abs(u.usage)) = 0 from utility.usage_data u where u.document_id = b.bill_id and u.deleted_at is null)
  union all
  select 'negative_usage', u.company_id, u.usage_id::text, '',
    jsonb_build_object('usage', u.usage, 'units', u.usage_units, 'bill', u.bill_id)
  from usage u left join bills b on b.bill_id = u.bill_id
  where u.usage < 0 and u.is_excluded is not true and u.net_metering_type is distinct from 'EXPORT'
    and coalesce(b.credits, 0) = 0
  union all
  select 'unit_changed', u.company_id, u.usage_id::text, '',
    jsonb_build_object('units', u.usage_units, 'before', u.units_before, 'meter', u.meter_id)
  from (
    select u.*, lag(u.usage_units) over (partition by u.company_id, u.meter_id, u.is_demand, u.electricity_type
      order by lower(u.period), u.usage_id) as units_before
    from usage u where u.meter_id is not null
  ) u where u.usage_units <> u.units_before
  union all
  select 'currency_changed', b.company_id, b.bill_id::text, '',
    jsonb_build_object('currency', b.currency, 'before', b.currency_before, 'account', b.account_number)
  from (
    select b.*, lag(b.currency) over (partition by b.company_id, b.account_number order by b.period_start, b.created) as currency_before
    from bills b where b.account_number is not null
  ) b where b.currency <> b.currency_before
  union all
  select 'bad_dates', u.company_id, u.usage_id::text, '',
    jsonb_build_object('start', u.start_date, 'end', u.end_date, 'quality', u.date_quality, 'bill', u.bill_id)
  from usage u where u.date_quality in ('end_missing', 'inverted', 'missing')
  union all
  select 'late_bill', m.company_id, m.meter_id, '', jsonb_build_object('billed_until', m.until, 'usual_days', m.days,
    'days_late', today - m.until - ceil(1.5 * m.days)::integer)
  from (
    select u.company_id, u.meter_id, max(upper(u.period)) as until, count(*) as steps,
      percentile_disc(0.5) within group (order by u.days) as days
    from (
      select u.company_id, u.meter_id, u.period, nullif(lower(u.period) - lag(lower(u.period)) over (
        partition by u.company_id, u.meter_id order by lower(u.period)), 0) as days
      from usage u where u.meter_id is not null and u.period is not null
    ) u group by u.company_id, u.meter_id having count(u.days) >= 2
  ) m
    join utility.meters t on t.id = m.meter_id and metersync.boolean_of(t.raw ->> 'isTracked') is not false
  where today - m.until > 1.5 * m.days
  union all
  select 'orphan', u.company_id, u.id::text, '', jsonb_strip_nulls(jsonb_build_object(
    'document', case when u.document_id is not null and (d.id is null or d.deleted_at is not null) then u.document_id end,
    'meter', case when u.meter_id is not null and (t.id is null or t.deleted_at is not null) then u.meter_id end))
  from utility.usage_data u
    left join utility.documents d on d.id = u.document_id
    left join utility.meters t on t.id = u.meter_id
  where u.company_id = any (companies) and u.deleted_at is null
    and (u.document_id is not null and (d.id is null or d.deleted_at is not null)
      or u.meter_id is not null and (t.id is null or t.deleted_at is not null))
  union all
  select 'unknown_unit', u.company_id, u.meter_id, coalesce(u.usage_units, ''),
    jsonb_build_object('units', u.usage_units, 'records', count(*))
  from usage u where u.dimension = 'unknown' and u.meter_id is not null group by u.company_id, u.meter_id, u.usage_units
  union all
  select 'unknown_commodity', m.company_id, m.id, m.datasource_type, jsonb_build_object('datasource_type', m.datasource_type)
  from utility.meters m
  where m.company_id = any (companies) and m.deleted_at is null and m.datasource_type not in ('ELECTRICITY', 'GAS', 'WATER',
    'DISTRICT', 'WASTE', 'FUEL', 'MISC', 'REFRIGERANT', 'SOLAR', 'TELECOM', 'SEWER', 'STEAM', 'CHILLED_WATER', 'HOT_WATER')
$$;
comment on function metersync.find_bill_issues is 'Evidence for the checks that run with bills.';

create or replace function metersync.find_connection_issues(companies uuid[], today date) returns table (
  check_name text, company_id uuid, entity_id text, subject text, evidence jsonb
) language sql stable as $$
  select case when c.status_class = 'unknown' then 'unknown_status' else 'unhealthy_connection' end, c.company_id,
    c.connection_id::text, coalesce(c.status, ''), jsonb_build_object('status', c.status, 'since', c.since, 'what_to_do', c.what_to_do,
      'data_until', c.data_until, 'detail', c.detail)
  from analytics.connections_needing_attention c
  where c.company_id = any (companies) and (c.status_class = 'unknown' or c.since < today - 7 or c.since is null)
$$;
comment on function metersync.find_connection_issues is 'Evidence for the checks that run with connections.';

create or replace function metersync.find_interval_issues(companies uuid[], today date) returns table (
  check_name text, company_id uuid, entity_id text, subject text, evidence jsonb
) language sql stable as $$
  with days as materialized (
    select d.*, date_trunc('month', d.local_date::timestamp)::date as month,
      min(d.local_date) over meter as first_day, max(d.local_date) over meter as last_day
    from analytics.interval_daily d where d.company_id = any (companies)
    window meter as (partition by d.company_id, d.meter_id, d.usage_units)
  )
  select 'interval_coverage', m.company_id, m.meter_id, to_char(m.month, 'YYYY-MM') || ' ' || m.usage_units, jsonb_build_object(
    'from', m.first_day, 'until', m.until, 'coverage', round(m.covered / m.seconds, 4), 'units', m.usage_units)
  from (
    select d.company_id, d.meter_id, d.usage_units, d.month, sum(d.covered_seconds)::numeric as covered,
      greatest(d.month, d.first_day) as first_day, least((d.month + interval '1 month')::date, d.last_day + 1) as until,
      extract(epoch from metersync.day_start(least((d.month + interval '1 month')::date, d.last_day + 1), d.time_zone)
        - metersync.day_start(greatest(d.month, d.first_day), d.time_zone)) as seconds
    from days d group by d.company_id, d.meter_id, d.usage_units, d.month, d.first_day, d.last_day, d.time_zone
  ) m where m.covered < 0.95 * m.seconds
  union all
  select 'clock_change', d.company_id, d.meter_id, d.local_date || ' ' || d.usage_units, jsonb_build_object(
    'readings', d.readings, 'expected', d.expected_readings, 'time_zone', d.time_zone, 'time_zone_source', d.time_zone_source)
  from days d where d.day_seconds <> 86400 and d.readings * d.granularity_seconds = 86400
  union all
  select 'interval_bill_mismatch', c.company_id, c.usage_id::text, '', jsonb_build_object('billed', c.billed_usage,
    'readings', c.interval_usage, 'units', c.units, 'relative_difference', c.relative_difference, 'bill', c.bill_id)
  from analytics.bill_interval_comparison c
  where c.company_id = any (companies) and c.interval_coverage = 1 and abs(c.relative_difference) > 0.02
  union all
  select 'unknown_quality', m.company_id, m.id, i.quality, jsonb_build_object('quality', i.quality, 'readings', count(*),
    'since', min(i.start_at))
  from utility.meters m join utility.intervals i on i.meter_id = m.id
  where m.company_id = any (companies) and i.quality is not null and analytics.standard_quality(i.quality) = 'unknown'
  group by m.company_id, m.id, i.quality
$$;
comment on function metersync.find_interval_issues is 'Evidence for the checks that run with intervals.';

-- One refresh of a warehouse at a time: two would open an issue twice. The lock stands in nobody's way but another refresh's, and
-- only who may write the table can take it.
create or replace function ops.refresh_data_issues(
  companies uuid[], kinds text[] default array['bills', 'connections', 'intervals'], today date default current_date,
  checks_off text[] default '{}'
) returns table (opened integer, closed integer, still_open integer) language plpgsql as $$
begin
  lock table ops.data_issues in share update exclusive mode;
  return query
  with checks as (
    select c.check_name, c.run_with, c.entity_type, c.severity from ops.data_issue_checks c
    where c.run_with = any (kinds) and c.check_name <> all (checks_off)
  ), found as materialized (
    select distinct on (f.check_name, f.entity_id, f.subject) f.*, c.entity_type, c.severity
    from (
      select * from metersync.find_bill_issues(companies, today) where exists (select from checks c where c.run_with = 'bills')
      union all
      select * from metersync.find_connection_issues(companies, today) where exists (select from checks c where c.run_with = 'connections')
      union all
      select * from metersync.find_interval_issues(companies, today) where exists (select from checks c where c.run_with = 'intervals')
    ) f join checks c using (check_name)
    order by f.check_name, f.entity_id, f.subject, f.evidence::text desc
  ), seen as (
    update ops.data_issues i set last_seen_at = clock_timestamp(), evidence = f.evidence, severity = f.severity
    from found f
    where i.closed_at is null and i.check_name = f.check_name and i.entity_type = f.entity_type
      and i.entity_id = f.entity_id and i.subject = f.subject
    returning i.id
  ), fresh as (
    insert into ops.data_issues (check_name, severity, company_id, entity_type, entity_id, subject, evidence)
    select f.check_name, f.severity, f.company_id, f.entity_type, f.entity_id, f.subject, f.evidence
    from found f
    where not exists (select from ops.data_issues i where i.closed_at is null and i.check_name = f.check_name
      and i.entity_type = f.entity_type and i.entity_id = f.entity_id and i.subject = f.subject)
    returning id
  ), gone as (
    update ops.data_issues i set closed_at = clock_timestamp(),
      closed_reason = case when i.check_name = any (checks_off) then 'check_off'
        when i.check_name in (select c.check_name from checks c) then 'evidence_gone' else 'check_removed' end
    where i.closed_at is null and (i.check_name = any (checks_off) or i.company_id = any (companies)
      and (i.check_name in (select c.check_name from checks c)
        or i.check_name not in (select c.check_name from ops.data_issue_checks c))
      and not exists (select from found f where f.check_name = i.check_name and f.entity_type = i.entity_type
        and f.entity_id = i.entity_id and f.subject = i.subject))
    returning i.id
  )
  select (select count(*) from fresh)::integer, (select count(*) from gone)::integer, (select count(*) from seen)::integer;
end
$$;
comment on function ops.refresh_data_issues is 'Looks at companies with the checks that run with the kinds given: opens an issue for new evidence, keeps those whose evidence is still there, closes the others. Checks that are off open none, and what is open of them is closed, of all companies. One that comes back is a new row.';
