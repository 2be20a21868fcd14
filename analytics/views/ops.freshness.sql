-- The last reads and events of each company and resource.
create or replace view ops.freshness as
with last_runs as (
  select c.id as company_id, c.name as company, r.*
  from utility.companies c
    join lateral (
      select distinct on (r.resource)
        r.resource,
        r.started_at as last_run_at,
        r.kind as last_run_kind,
        r.state as last_run_state,
        max(r.finished_at) filter (where r.state = 'complete' and r.kind = 'full') over (
          partition by r.resource
        ) as last_complete_at
      from metersync.runs r
      where r.company_id = c.id
        and r.resource is not null
      order by r.resource, r.started_at desc
    ) r on true
  where c.deleted_at is null
), received as (
  select
    coalesce(j.company_id, m.company_id) as company_id,
    j.kind || 's' as resource,
    max(j.received_at) as last_received_at,
    max(coalesce(j.settled_at, j.recorded_at)) filter (
      where j.outcome in ('applied', 'superseded')
    ) as last_applied_at
  from metersync.journal j
    left join utility.meters m on j.kind = 'interval' and m.id = j.record_id
  where j.kind in ('connection', 'document', 'interval')
  group by 1, 2
), waiting as (
  select
    case s.kind
      when 'interval' then m.company_id
      else metersync.uuid_of(split_part(s.queue, '/', 2))
    end as company_id,
    s.kind || 's' as resource,
    count(*) as pending,
    min(s.recorded_at) as oldest
  from metersync.journal s
    left join utility.meters m on s.kind = 'interval' and m.id = s.record_id
  where s.outcome = 'pending'
  group by 1, 2
), all_events as (
  select
    company_id, resource, last_received_at, last_applied_at,
    null::bigint as pending,
    null::timestamptz as oldest
  from received
  union all
  select company_id, resource, null, null, pending, oldest
  from waiting
), events as (
  select
    company_id, resource,
    max(last_received_at) as last_event_received_at,
    max(last_applied_at) as last_event_applied_at,
    sum(pending) as pending_events,
    min(oldest) as oldest_pending_at
  from all_events
  group by company_id, resource
)
select
  r.company_id, r.company, r.resource, r.last_complete_at, r.last_run_at, r.last_run_kind,
  r.last_run_state, e.last_event_received_at, e.last_event_applied_at,
  coalesce(e.pending_events, 0)::integer as pending_events,
  e.oldest_pending_at,
  now() - e.oldest_pending_at as behind_by,
  k.changed_at as months_kept_at
from last_runs r
  left join events e on e.company_id = r.company_id and e.resource = r.resource
  left join metersync.company_changes k on k.company_id = r.company_id
    and k.is_kept;
comment on view ops.freshness is
  'One row for each company and resource: the last run, the last event, and what is waiting.';
comment on column ops.freshness.resource is
  'connections, meters, documents, usageData or intervals.';
comment on column ops.freshness.last_complete_at is 'End of its last complete backfill.';
comment on column ops.freshness.last_run_kind is 'full or reconcile.';
comment on column ops.freshness.last_run_state is 'running, complete, partial, suspect or failed.';
comment on column ops.freshness.behind_by is 'How long the oldest event has waited.';
comment on column ops.freshness.months_kept_at is 'Up to when changes are in its months.';
