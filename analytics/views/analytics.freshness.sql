-- Three clocks: what the utility published, when the service collected it, when it was applied here.
create or replace view analytics.freshness as
select
  company_id,
  connection_id,
  provider,
  status,
  status_class,
  utility_published_until,
  service_collected_at,
  applied_at,
  pending_events,
  oldest_pending_at,
  usual_days_between_bills,
  next_bill_expected_on,
  next_bill_expected_on < current_date as is_late,
  case
    when pending_events > 0
      and oldest_pending_at < now() - interval '1 hour' then 'metersync'
    when not coalesce(next_bill_expected_on < current_date, false) then null
    when status_class = 'needs_customer' then 'customer'
    when status_class = 'inactive' then 'inactive'
    when status_class = 'provider_problem' then 'provider'
    when status_class = 'waiting' then 'service'
    else 'utility'
  end as cause_of_lateness
from (
  select
    k.company_id,
    k.id as connection_id,
    k.datasource as provider,
    k.status,
    analytics.status_class(k.status) as status_class,
    b.until as utility_published_until,
    b.collected as service_collected_at,
    greatest(b.applied, k.synced_at) as applied_at,
    coalesce(e.pending, 0)::integer as pending_events,
    e.oldest as oldest_pending_at,
    b.cadence as usual_days_between_bills,
    b.until + ceil(1.5 * coalesce(b.cadence, 31))::integer as next_bill_expected_on
  from utility.connections k
    left join (
      select
        company_id,
        connection_id,
        max(last_day) as until,
        max(collected) as collected,
        max(applied) as applied,
        round(percentile_cont(0.5) within group (order by days)::numeric, 1) as cadence
      from (
        select
          c.company_id,
          c.connection_id,
          upper(u.period) - 1 as last_day,
          u.created as collected,
          r.synced_at as applied,
          lower(u.period) - lag(lower(u.period)) over (
            partition by c.company_id, c.connection_id, c.meter_id
            order by lower(u.period)
          ) as days
        from analytics.connection_meters c
          join analytics.usage u on u.company_id = c.company_id
            and u.meter_id = c.meter_id
          join utility.usage_data r on r.id = u.usage_id
      ) billed
      group by company_id, connection_id
    ) b on b.company_id = k.company_id
      and b.connection_id = k.id
    left join (
      select
        owner,
        sum(events) as pending,
        min(since) as oldest
      from metersync.stale_records
      where kind in ('connection', 'document')
      group by owner
    ) e on e.owner = k.company_id::text
  where k.deleted_at is null
) told;

comment on view analytics.freshness is
  'One row for each connection: how far its bills reach, when the service collected them, when they came here, and who is late.';
comment on column analytics.freshness.provider is 'Utility.';
comment on column analytics.freshness.status is 'Status, as the service names it.';
comment on column analytics.freshness.status_class is
  'healthy, waiting, needs_customer, provider_problem, inactive; unknown for a status that is none of those documented.';
comment on column analytics.freshness.utility_published_until is
  'Last day that a bill of the connection is for.';
comment on column analytics.freshness.service_collected_at is
  'When the service made the newest of their records.';
comment on column analytics.freshness.applied_at is 'When the newest read of it began.';
comment on column analytics.freshness.pending_events is
  'Events of the company whose records wait to be read.';
comment on column analytics.freshness.oldest_pending_at is 'Since when the first of them waits.';
comment on column analytics.freshness.usual_days_between_bills is
  'Median days from one bill of a meter to the next.';
comment on column analytics.freshness.next_bill_expected_on is
  'One and a half times that after the last bill; 31 days where there is one bill alone.';
comment on column analytics.freshness.is_late is
  'Whether that day is past; NULL without any bill.';
comment on column analytics.freshness.cause_of_lateness is
  'metersync (events wait for more than an hour), customer, provider, service, inactive, or utility when all else is well; NULL when nothing is late.';
