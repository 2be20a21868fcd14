-- How many bills of a month are there, and which of them count.
create or replace view analytics.statement_availability as
select company_id, site_id, month, coalesce(sum(bills), 0)::integer as bills, coalesce(sum(included), 0)::integer as included,
  coalesce(sum(deleted), 0)::integer as excluded_deleted, coalesce(sum(superseded), 0)::integer as excluded_superseded,
  coalesce(sum(not_read), 0)::integer as not_read, coalesce(sum(flagged), 0)::integer as included_flagged, coalesce(sum(expected), 0)::integer as meters_expected,
  coalesce(sum(billed), 0)::integer as meters_billed,
  round(sum(billed)::numeric / nullif(sum(expected), 0), 4) as availability
from (
  select company_id, site_id, date_trunc('month', coalesce(bill_date, period_end)::timestamp)::date as month, 1 as bills,
    is_effective::integer as included, (reason is not distinct from 'deleted')::integer as deleted,
    (reason is not distinct from 'superseded')::integer as superseded,
    (reason is not distinct from 'not_read')::integer as not_read,
    (is_effective and coalesce(is_flagged, false))::integer as flagged, null::integer as expected, null::integer as billed
  from analytics.bills_all
  union all
  select company_id, site_id, month, null, null, null, null, null, null, count(distinct meter_id),
    count(distinct meter_id) filter (where days_covered > 0)
  from analytics.monthly_usage
  group by company_id, site_id, month
) told
group by company_id, site_id, month;
comment on view analytics.statement_availability is 'Bills of each site and month, those that count and why others do not, and meters whose days should be billed.';
select metersync.comment_columns('analytics.statement_availability', '{
  "month": "First day of the month in which the bills'' periods end; NULL for bills without any date.",
  "bills": "Documents.",
  "included": "Those that count.",
  "excluded_deleted": "Those that are deleted.",
  "excluded_superseded": "Those that another superseded.",
  "not_read": "Those that an event named and no read brought yet.",
  "included_flagged": "Those that count though the service doubts them: subtract them for the stricter number.",
  "meters_expected": "Meters with bills in the month, or before and after it.",
  "meters_billed": "Those with a day of the month billed.",
  "availability": "meters_billed / meters_expected."
}');

create or replace view analytics.emissions_monthly as
select u.company_id, u.site_id, u.meter_id, u.datasource_type, u.month, u.usage, u.units, u.coverage, f.scope, f.method,
  f.version, f.id as factor_id, f.kg_co2e_per_unit, u.usage * f.kg_co2e_per_unit as kg_co2e,
  coalesce(o.emission_region, c.emission_region) as emission_region
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
    select coalesce(e.company_id, m.company_id) as company_id, e.kind || 's' as resource, max(received_at) as last_event_received_at, max(applied_at) as last_event_applied_at,
      count(*) filter (where outcome = 'pending') as pending_events,
      min(recorded_at) filter (where outcome = 'pending') as oldest_pending_at
    from metersync.events e left join utility.meters m on e.kind = 'interval' and m.id = e.record_id
    where e.kind in ('connection', 'document', 'interval') group by 1, 2
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
