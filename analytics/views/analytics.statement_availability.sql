-- How many bills of a month exist, which of them count, and which meters should be billed. Meters
-- are expected in the months of monthly_usage and, after their last bill, in the months that began
-- before the next bill was due, for at most ten years. The template expected_bills says from when
-- on no bill of a meter is expected.
create or replace view analytics.statement_availability as
with corrected as (
  select distinct company_id, id
  from history.documents
  where raw is not null
    and valid_from < valid_to
), meter_sites as (
  select u.company_id, u.document_id, min(m.site_id::text)::uuid as site_id
  from utility.usage_data u
    join utility.meters m on m.id = u.meter_id
  group by u.company_id, u.document_id
), bills as (
  select
    b.company_id,
    coalesce(b.site_id, s.site_id) as site_id,
    date_trunc('month', coalesce(b.bill_date, b.period_end)::timestamp)::date as month,
    b.is_effective, b.reason, b.is_flagged,
    c.id is not null as is_corrected
  from analytics.bills_all b
    left join corrected c on c.company_id = b.company_id and c.id = b.bill_id
    left join meter_sites s on s.company_id = b.company_id
      and s.document_id = b.bill_id
), expectations as not materialized (
  {{expected_bills periods="analytics.usage" connections="utility.connections"}}
), billed_months as (
  select
    u.company_id, u.site_id, u.month,
    count(distinct u.meter_id) as expected,
    count(distinct u.meter_id) filter (where u.days_covered > 0) as billed
  from analytics.monthly_usage u
    left join expectations e on e.company_id = u.company_id
      and e.meter_id = u.meter_id
  where u.month is not null
    and (u.days_covered > 0 or e.ends_on > u.month is not false)
  group by u.company_id, u.site_id, u.month
), silent_months as (
  select e.company_id, e.site_id, first::date as month
  from expectations e
    cross join lateral generate_series(
      date_trunc('month', (e.until - 1)::timestamp) + interval '1 month',
      least(e.until + 3660, current_date - metersync.days_to_next_bill(e.usual_days), e.ends_on)
        - 1,
      interval '1 month'
    ) as first
  where e.site_id is not null
), counted as (
  select
    company_id, site_id, month,
    1 as bills,
    is_effective::integer as included,
    (reason is not distinct from 'deleted')::integer as deleted,
    (reason is not distinct from 'superseded')::integer as superseded,
    (reason is not distinct from 'not_read')::integer as not_read,
    (is_effective and coalesce(is_flagged, false))::integer as flagged,
    (is_effective and is_corrected)::integer as corrected,
    null::integer as expected,
    null::integer as billed
  from bills
  union all
  select
    company_id, site_id, month, null, null, null, null, null, null, null, expected, billed
  from billed_months
  union all
  select company_id, site_id, month, null, null, null, null, null, null, null, 1, 0
  from silent_months
)
select
  n.company_id, n.site_id, month,
  coalesce(sum(bills), 0)::integer as bills,
  coalesce(sum(included), 0)::integer as included,
  coalesce(sum(deleted), 0)::integer as excluded_deleted,
  coalesce(sum(superseded), 0)::integer as excluded_superseded,
  coalesce(sum(not_read), 0)::integer as not_read,
  coalesce(sum(flagged), 0)::integer as included_flagged,
  coalesce(sum(expected), 0)::integer as meters_expected,
  coalesce(sum(billed), 0)::integer as meters_billed,
  -- For the current month, only meters that are billed already, or are late, are known.
  case
    when month + interval '1 month' <= current_date
      then round(sum(billed)::numeric / nullif(sum(expected), 0), 4)
  end as availability,
  c.name as company,
  s.name as site,
  coalesce(sum(corrected), 0)::integer as included_corrected
from counted n
  left join utility.companies c on c.id = n.company_id
  left join utility.sites s on s.id = n.site_id
group by n.company_id, n.site_id, month, c.name, s.name
order by uuid_hash(site_id);
comment on view analytics.statement_availability is
  'Bills of each site and month, why some do not count, and meters that should be billed by now.';
comment on column analytics.statement_availability.month is 'Month in which the periods end.';
comment on column analytics.statement_availability.bills is 'Documents.';
comment on column analytics.statement_availability.included is 'Bills that count.';
comment on column analytics.statement_availability.excluded_deleted is 'Deleted bills.';
comment on column analytics.statement_availability.excluded_superseded is 'Superseded bills.';
comment on column analytics.statement_availability.not_read is 'Named by an event, not read yet.';
comment on column analytics.statement_availability.included_flagged is
  'Bills that count although the service doubts them.';
comment on column analytics.statement_availability.included_corrected is
  'Bills that count and were changed after the first read.';
comment on column analytics.statement_availability.site_id is
  'Site of the document, or else of its meters, or one of several.';
comment on column analytics.statement_availability.meters_expected is
  'Meters billed in, before and after the month, or late by now.';
comment on column analytics.statement_availability.meters_billed is 'Meters with a billed day.';
comment on column analytics.statement_availability.availability is
  'meters_billed / meters_expected; NULL until the month is over.';
