-- How many bills of a month are there, and which of them count. Meters are expected in the months that monthly_usage has, and
-- after their last bill in those that began before what is late by the check late_bill: one and a half times the usual days ago
-- (31 where fewer than three bills tell no usual ones). Nothing more is expected of a meter that is not tracked, after it or its account
-- ended, after every connection that collected it was deleted or inactive, nor ten years after its last bill.
create or replace view analytics.statement_availability as
select company_id, site_id, month, coalesce(sum(bills), 0)::integer as bills, coalesce(sum(included), 0)::integer as included,
  coalesce(sum(deleted), 0)::integer as excluded_deleted, coalesce(sum(superseded), 0)::integer as excluded_superseded,
  coalesce(sum(not_read), 0)::integer as not_read, coalesce(sum(flagged), 0)::integer as included_flagged, coalesce(sum(expected), 0)::integer as meters_expected,
  coalesce(sum(billed), 0)::integer as meters_billed,
  round(sum(billed)::numeric / nullif(sum(expected), 0), 4) as availability
from (
  select b.company_id, coalesce(b.site_id, s.site_id) as site_id,
    date_trunc('month', coalesce(b.bill_date, b.period_end)::timestamp)::date as month, 1 as bills,
    b.is_effective::integer as included, (b.reason is not distinct from 'deleted')::integer as deleted,
    (b.reason is not distinct from 'superseded')::integer as superseded,
    (b.reason is not distinct from 'not_read')::integer as not_read,
    (b.is_effective and coalesce(b.is_flagged, false))::integer as flagged, null::integer as expected, null::integer as billed
  from analytics.bills_all b
    left join (
      select u.company_id, u.document_id, min(m.site_id::text)::uuid as site_id
      from utility.usage_data u join utility.meters m on m.id = u.meter_id
      group by u.company_id, u.document_id
    ) s on s.company_id = b.company_id and s.document_id = b.bill_id
  union all
  select company_id, site_id, month, null, null, null, null, null, null, count(distinct meter_id),
    count(distinct meter_id) filter (where days_covered > 0)
  from analytics.monthly_usage
  where month is not null
  group by company_id, site_id, month
  union all
  select silent.company_id, silent.site_id, first::date, null, null, null, null, null, null, 1, 0
  from (
    select b.company_id, m.site_id, b.until, least(b.until + 3660, current_date - ceil(1.5 * b.days)::integer,
      m.deleted_at::date, c.ended_on) as due
    from (
      select company_id, meter_id, max(upper(period)) as until,
        case when count(days) >= 2 then percentile_disc(0.5) within group (order by days) else 31 end as days
      from (
        select company_id, meter_id, period, nullif(lower(period) - lag(lower(period)) over (
          partition by company_id, meter_id order by lower(period)), 0) as days
        from analytics.usage where meter_id is not null and period is not null
      ) billed
      group by company_id, meter_id
    ) b
      join utility.meters m on m.id = b.meter_id and metersync.boolean_of(m.raw ->> 'isTracked') is not false
      left join (
        select k.company_id, meter.id as meter_id, max(case
            when k.deleted_at is not null then k.deleted_at::date
            when account ->> 'trackingStatus' = 'DISABLED' then '-infinity'
            when k.status = 'COMPANY_INACTIVE' then coalesce(metersync.time_of(k.raw ->> 'statusFirstSeenTime')::date, '-infinity')
            else coalesce(metersync.date_of(account ->> 'lastServiceDate'), 'infinity')
          end) as ended_on
        from utility.connections k
          cross join lateral jsonb_array_elements(metersync.elements(k.raw -> 'accounts')) as account
          cross join lateral jsonb_array_elements_text(metersync.elements(account -> 'meters')) as meter (id)
        group by k.company_id, meter.id
      ) c on c.company_id = b.company_id and c.meter_id = b.meter_id
  ) silent
    cross join lateral generate_series(date_trunc('month', (silent.until - 1)::timestamp) + interval '1 month',
      silent.due - 1, interval '1 month') as first
) told
group by company_id, site_id, month;
comment on view analytics.statement_availability is 'Bills of each site and month, those that count and why others do not, and meters whose days should be billed by now.';
select metersync.comment_columns('analytics.statement_availability', '{
  "month": "First day of the month in which the bills'' periods end; NULL for bills without any date.",
  "bills": "Documents.",
  "included": "Those that count.",
  "excluded_deleted": "Those that are deleted.",
  "excluded_superseded": "Those that another superseded.",
  "not_read": "Those that an event named and no read brought yet.",
  "included_flagged": "Those that count though the service doubts them: subtract them for the stricter number.",
  "site_id": "Site that the bill names, else of its meters: one of them, where they are of several.",
  "meters_expected": "Meters with bills in the month, before and after it, or before it and late by now.",
  "meters_billed": "Those with a day of the month billed.",
  "availability": "meters_billed / meters_expected."
}');

create or replace view analytics.emissions_monthly as
select u.company_id, u.site_id, u.meter_id, u.datasource_type, u.month, u.usage, u.units, u.coverage, f.scope, f.method,
  f.version, f.id as factor_id, f.kg_co2e_per_unit, u.usage * f.kg_co2e_per_unit as kg_co2e,
  coalesce(o.emission_region, c.emission_region) as emission_region, u.datasource_type as commodity
from analytics.monthly_usage u
  left join ops.site_overrides o on o.site_id = u.site_id
  left join ops.company_overrides c on c.company_id = u.company_id
  left join ops.emission_factors f on f.datasource_type = u.datasource_type and f.units = u.units
    and u.month >= f.valid_from and u.month < f.valid_to
    and (f.region = coalesce(o.emission_region, c.emission_region) or f.region = '' and not exists (
      select from ops.emission_factors own
      where own.region = coalesce(o.emission_region, c.emission_region) and own.datasource_type = f.datasource_type
        and own.units = f.units and own.scope = f.scope and own.method = f.method and own.version = f.version
        and u.month >= own.valid_from and u.month < own.valid_to));
comment on view analytics.emissions_monthly is 'monthly_usage by the emission factors that you supplied (ops.emission_factors): one row for each that applies; NULL emissions, not zero, where none does.';
select metersync.comment_columns('analytics.emissions_monthly', '{
  "month": "First day of the month; NULL for usage without dates, which no factor applies to.",
  "usage": "monthly_usage.usage.",
  "units": "Unit of usage and factor.",
  "coverage": "Part of the month that bills are for: the emissions are of that part.",
  "scope": "Scope of the factor.",
  "method": "location or market for scope 2; else empty.",
  "version": "Set of factors: never add emissions of several.",
  "factor_id": "The factor; NULL where none applies.",
  "kg_co2e_per_unit": "Its value.",
  "kg_co2e": "Kilograms of CO2 equivalent; NULL without a factor.",
  "emission_region": "Region by which the factor was looked up; NULL: a factor for every site."
}');

-- What was read and applied of each company and resource, and when.
create or replace view ops.freshness as
select c.id as company_id, c.name as company, r.resource, r.last_complete_at, r.last_run_at, r.last_run_kind, r.last_run_state,
  e.last_event_received_at, e.last_event_applied_at, coalesce(e.pending_events, 0)::integer as pending_events, e.oldest_pending_at,
  now() - e.oldest_pending_at as behind_by
from utility.companies c
  join lateral (
    select distinct on (r.resource) r.resource, r.started_at as last_run_at, r.kind as last_run_kind, r.state as last_run_state,
      max(r.finished_at) filter (where r.state = 'complete' and r.kind = 'full') over (partition by r.resource) as last_complete_at
    from metersync.runs r
    where r.company_id = c.id and r.resource is not null
    order by r.resource, r.started_at desc
  ) r on true
  left join (
    select company_id, resource, max(last_received_at) as last_event_received_at,
      max(last_applied_at) as last_event_applied_at, sum(pending) as pending_events, min(oldest) as oldest_pending_at
    from (
      select coalesce(j.company_id, m.company_id) as company_id, j.kind || 's' as resource,
        max(j.received_at) as last_received_at, max(j.recorded_at) filter (where j.arrived_as = 'applied') as last_applied_at,
        null::bigint as pending, null::timestamptz as oldest
      from metersync.journal j left join utility.meters m on j.kind = 'interval' and m.id = j.record_id
      where j.kind in ('connection', 'document', 'interval')
      group by 1, 2
      union all
      select case s.kind when 'interval' then m.company_id else metersync.uuid_of(s.owner) end, s.kind || 's', null, max(s.settled_at), null, null
      from metersync.settlements s left join utility.meters m on s.kind = 'interval' and m.id = s.owner
      where s.outcome in ('applied', 'superseded')
      group by 1, 2
      union all
      select case s.kind when 'interval' then m.company_id else metersync.uuid_of(s.owner) end, s.kind || 's', null, null, sum(s.events), min(s.since)
      from metersync.stale_records s left join utility.meters m on s.kind = 'interval' and m.id = s.owner
      group by 1, 2
    ) told
    group by company_id, resource
  ) e on e.company_id = c.id and e.resource = r.resource
where c.deleted_at is null;
comment on view ops.freshness is 'One row for each company and resource that was read: the last run, the last event, and what waits.';
select metersync.comment_columns('ops.freshness', '{
  "company": "Name of the company.",
  "resource": "connections, meters, documents, usageData or intervals.",
  "last_complete_at": "End of the last backfill that read all of it.",
  "last_run_at": "Start of the last run that read of it.",
  "last_run_kind": "full or reconcile.",
  "last_run_state": "How that run stands: running, complete, partial, suspect or failed.",
  "last_event_received_at": "When the last event about it came.",
  "last_event_applied_at": "When an event about it was last applied.",
  "pending_events": "Events whose records wait to be read.",
  "oldest_pending_at": "Since when the first of them waits.",
  "behind_by": "For how long it waits; NULL when nothing does."
}');

create or replace view ops.runs as
select run_id, company_id, resource, kind, state, started_at, finished_at, finished_at - started_at as took, pages, passes,
  total_said, distinct_ids, rows_inserted, rows_changed, rows_unchanged, rows_tombstoned, rows_rejected, rows_missed, error
from metersync.runs;
comment on view ops.runs is 'Backfills: one row for the run, one for each company and resource in it.';
select metersync.comment_columns('ops.runs', jsonb_build_object('took', 'From start to end.') || (
  select jsonb_object_agg(a.attname, col_description(a.attrelid, a.attnum)) from pg_attribute a
  where a.attrelid = 'metersync.runs'::regclass and a.attname in ('run_id', 'company_id', 'resource', 'kind', 'state',
    'started_at', 'finished_at', 'pages', 'passes', 'total_said', 'distinct_ids', 'rows_inserted', 'rows_changed',
    'rows_unchanged', 'rows_tombstoned', 'rows_rejected', 'rows_missed', 'error')));
