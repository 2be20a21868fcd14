-- Three clocks: when the utility published, when the service collected, and when metersync applied.
-- Bills are looked up for each meter of a connection, so that a query for one connection reads no
-- bills of others. The company is not compared with =, because Postgres would then read the index
-- of all usage of the company for each meter.
create or replace view analytics.freshness as
with connection_bills as (
  select c.company_id, c.connection_id, b.*
  from analytics.connection_meters c
    cross join lateral (
      select
        upper(u.period) - 1 as last_day,
        u.created as collected_at,
        r.synced_at as applied_at,
        nullif(
          lower(u.period) - lag(lower(u.period)) over (order by lower(u.period)),
          0
        ) as days_between
      from analytics.usage u
        join utility.usage_data r on r.id = u.usage_id
      where u.company_id is not distinct from c.company_id
        and u.meter_id = c.meter_id
      offset 0
    ) b
), billed as (
  select
    company_id, connection_id,
    max(last_day) as published_until,
    max(collected_at) as collected_at,
    max(applied_at) as applied_at,
    round(percentile_cont(0.5) within group (order by days_between)::numeric, 1) as usual_days
  from connection_bills
  group by company_id, connection_id
), connections as (
  select
    k.company_id,
    k.id as connection_id,
    k.datasource as provider,
    k.status,
    analytics.status_class(k.status) as status_class,
    b.published_until as utility_published_until,
    b.collected_at as service_collected_at,
    greatest(b.applied_at, k.synced_at) as applied_at,
    coalesce(p.events, 0)::integer as pending_events,
    p.oldest as oldest_pending_at,
    b.usual_days as usual_days_between_bills,
    case
      when a.ends_on > l.last_day + 3 then l.last_day + metersync.days_to_next_bill(b.usual_days)
    end as next_bill_expected_on
  from utility.connections k
    left join billed b on b.company_id = k.company_id and b.connection_id = k.id
    cross join lateral (select coalesce(b.published_until, k.created::date) as last_day) l
    cross join lateral (
      -- As in the template expected_bills.
      select coalesce(max(metersync.account_ends_on(account)), 'infinity') as ends_on
      from jsonb_array_elements(metersync.elements(k.raw -> 'accounts')) as accounts (account)
    ) a
    cross join lateral (
      select count(*) as events, min(recorded_at) as oldest
      from metersync.journal
      where queue in ('connection/' || k.company_id, 'document/' || k.company_id)
    ) p
  where k.deleted_at is null
), judged as (
  select *, coalesce(next_bill_expected_on < current_date, false) as is_late
  from connections
)
select
  j.*,
  case
    when pending_events > 0 and oldest_pending_at < now() - interval '1 hour' then 'metersync'
    when not is_late then null
    when status_class = 'needs_customer' then 'customer'
    when status_class = 'inactive' then 'inactive'
    when status_class = 'provider_problem' then 'provider'
    when status_class = 'waiting' then 'service'
    else 'utility'
  end as cause_of_lateness,
  case when is_late then current_date - next_bill_expected_on end as days_late,
  (select name from utility.companies where id = j.company_id) as company
from judged j
order by uuid_hash(connection_id);
comment on view analytics.freshness is
  'One row for each connection: how far its bills reach, and who is late.';
comment on column analytics.freshness.utility_published_until is 'Last day that is billed.';
comment on column analytics.freshness.service_collected_at is
  'When the service made the newest of its records.';
comment on column analytics.freshness.applied_at is 'When the newest read of it began.';
comment on column analytics.freshness.usual_days_between_bills is 'Median for its meters.';
comment on column analytics.freshness.next_bill_expected_on is
  '1.5 usual intervals after the last bill, or 47 days after an only bill or the start of the '
  'connection; NULL if none is expected.';
comment on column analytics.freshness.days_late is
  'Days since the next bill was expected; NULL if not late.';
comment on column analytics.freshness.cause_of_lateness is
  'metersync (events waited for an hour), customer, provider, service, inactive or utility.';
