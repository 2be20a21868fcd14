-- How many bills of a month are there, and which of them count. Meters are expected in the months that monthly_usage has, and
-- after their last bill in those that began before what is late by the check late_bill: one and a half times the usual days ago
-- (31 where fewer than three bills tell no usual ones). Nothing more is expected of a meter that is not tracked, after it or its account
-- ended, after every connection that collected it was deleted or inactive, nor ten years after its last bill.
create or replace view analytics.statement_availability as
select
  company_id,
  site_id,
  month,
  coalesce(sum(bills), 0)::integer as bills,
  coalesce(sum(included), 0)::integer as included,
  coalesce(sum(deleted), 0)::integer as excluded_deleted,
  coalesce(sum(superseded), 0)::integer as excluded_superseded,
  coalesce(sum(not_read), 0)::integer as not_read,
  coalesce(sum(flagged), 0)::integer as included_flagged,
  coalesce(sum(expected), 0)::integer as meters_expected,
  coalesce(sum(billed), 0)::integer as meters_billed,
  round(sum(billed)::numeric / nullif(sum(expected), 0), 4) as availability
from (
  select
    b.company_id,
    coalesce(b.site_id, s.site_id) as site_id,
    date_trunc('month', coalesce(b.bill_date, b.period_end)::timestamp)::date as month,
    1 as bills,
    b.is_effective::integer as included,
    (b.reason is not distinct from 'deleted')::integer as deleted,
    (b.reason is not distinct from 'superseded')::integer as superseded,
    (b.reason is not distinct from 'not_read')::integer as not_read,
    (b.is_effective and coalesce(b.is_flagged, false))::integer as flagged,
    null::integer as expected,
    null::integer as billed
  from analytics.bills_all b
    left join (
      select
        u.company_id,
        u.document_id,
        min(m.site_id::text)::uuid as site_id
      from utility.usage_data u
        join utility.meters m on m.id = u.meter_id
      group by u.company_id, u.document_id
    ) s on s.company_id = b.company_id
      and s.document_id = b.bill_id
  union all
  select
    company_id,
    site_id,
    month,
    null,
    null,
    null,
    null,
    null,
    null,
    count(distinct meter_id),
    count(distinct meter_id) filter (where days_covered > 0)
  from analytics.monthly_usage
  where month is not null
  group by company_id, site_id, month
  union all
  select
    silent.company_id,
    silent.site_id,
    first::date,
    null,
    null,
    null,
    null,
    null,
    null,
    1,
    0
  from (
    select
      b.company_id,
      m.site_id,
      b.until,
      least(
        b.until + 3660,
        current_date - ceil(1.5 * b.days)::integer,
        m.deleted_at::date,
        c.ended_on
      ) as due
    from (
      select
        company_id,
        meter_id,
        max(upper(period)) as until,
        case
          when count(days) >= 2 then percentile_disc(0.5) within group (order by days)
          else 31
        end as days
      from (
        select
          company_id,
          meter_id,
          period,
          nullif(
            lower(period) - lag(lower(period)) over (
              partition by company_id, meter_id
              order by lower(period)
            ),
            0
          ) as days
        from analytics.usage
        where meter_id is not null
          and period is not null
      ) billed
      group by company_id, meter_id
    ) b
      join utility.meters m on m.id = b.meter_id
        and metersync.boolean_of(m.raw ->> 'isTracked') is not false
      left join (
        select
          k.company_id,
          meter.id as meter_id,
          max(
            case
              when k.deleted_at is not null then k.deleted_at::date
              when account ->> 'trackingStatus' = 'DISABLED' then '-infinity'
              when k.status = 'COMPANY_INACTIVE'
                then coalesce(
                  metersync.time_of(k.raw ->> 'statusFirstSeenTime')::date,
                  '-infinity'
                )
              else coalesce(metersync.date_of(account ->> 'lastServiceDate'), 'infinity')
            end
          ) as ended_on
        from utility.connections k
          cross join lateral jsonb_array_elements(
            metersync.elements(k.raw -> 'accounts')
          ) as account
          cross join lateral jsonb_array_elements_text(
            metersync.elements(account -> 'meters')
          ) as meter(id)
        group by k.company_id, meter.id
      ) c on c.company_id = b.company_id
        and c.meter_id = b.meter_id
  ) silent
    cross join lateral generate_series(
      date_trunc('month', (silent.until - 1)::timestamp) + interval '1 month',
      silent.due - 1,
      interval '1 month'
    ) as first
) told
group by company_id, site_id, month;

comment on view analytics.statement_availability is
  'Bills of each site and month, those that count and why others do not, and meters whose days should be billed by now.';
comment on column analytics.statement_availability.month is
  'First day of the month in which the bills'' periods end; NULL for bills without any date.';
comment on column analytics.statement_availability.bills is 'Documents.';
comment on column analytics.statement_availability.included is 'Those that count.';
comment on column analytics.statement_availability.excluded_deleted is 'Those that are deleted.';
comment on column analytics.statement_availability.excluded_superseded is
  'Those that another superseded.';
comment on column analytics.statement_availability.not_read is
  'Those that an event named and no read brought yet.';
comment on column analytics.statement_availability.included_flagged is
  'Those that count though the service doubts them: subtract them for the stricter number.';
comment on column analytics.statement_availability.site_id is
  'Site that the bill names, else of its meters: one of them, where they are of several.';
comment on column analytics.statement_availability.meters_expected is
  'Meters with bills in the month, before and after it, or before it and late by now.';
comment on column analytics.statement_availability.meters_billed is
  'Those with a day of the month billed.';
comment on column analytics.statement_availability.availability is
  'meters_billed / meters_expected.';
