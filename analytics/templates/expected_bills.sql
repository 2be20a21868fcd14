-- Until when bills of each billed meter are expected. Checks and views share this text, so that
-- they agree. From ends_on on no bill is expected: that is when the meter, its site or its account
-- ended, when all connections that collected the meter were deleted or inactive, or when another
-- meter of the same account replaced the meter. Nothing at all is expected of a meter or an account
-- that is not tracked, and nothing after its last bill of a meter that the warehouse does not have.
-- Everything is grouped by company, so that a query for one company reads only its records.
-- Arguments: periods, rows with company_id, meter_id and period; connections, the rows to read.
with steps as (
  select
    company_id, meter_id, period,
    nullif(
      lower(period)
        - lag(lower(period)) over (partition by company_id, meter_id order by lower(period)),
      0
    ) as days_between
  from {{periods}} p
  where meter_id is not null
    and period is not null
), billed as (
  select
    company_id, meter_id,
    min(lower(period)) as first_day,
    max(upper(period)) as until,
    range_agg(period) as days,
    -- With fewer than three bills, no number of days between them is usual.
    case
      when count(days_between) >= 2 then percentile_disc(0.5) within group (order by days_between)
    end as usual_days
  from steps
  group by company_id, meter_id
), collections as (
  select
    k.company_id, m.meter_id,
    min(a.account ->> 'id') as account,
    max(
      case
        when k.deleted_at is not null then k.deleted_at::date
        when k.status = 'COMPANY_INACTIVE' then least(
          coalesce(metersync.time_of(k.raw ->> 'statusFirstSeenTime')::date, '-infinity'),
          metersync.account_ends_on(a.account)
        )
        else metersync.account_ends_on(a.account)
      end
    ) as ends_on
  from {{connections}} k
    cross join jsonb_array_elements(metersync.elements(k.raw -> 'accounts')) as a (account)
    cross join jsonb_array_elements_text(metersync.elements(a.account -> 'meters')) as m (meter_id)
  group by k.company_id, m.meter_id
), placed as (
  select
    b.*, m.site_id,
    coalesce(m.account_id, c.account, metersync.account_number(m.raw), b.meter_id) as account,
    m.datasource_type,
    case
      when m.id is null then b.until
      when metersync.boolean_of(m.raw ->> 'isTracked') is false then '-infinity'::date
      else least(m.deleted_at::date, m.stopped_on, c.ends_on)
    end as ends_on
  from billed b
    left join collections c on c.company_id = b.company_id
      and c.meter_id = b.meter_id
    left join lateral (
      select
        m.*,
        (
          select metersync.date_of(s.raw ->> 'dataCollectionStopDate')
          from utility.sites s
          where s.id = m.site_id
        ) as stopped_on
      from utility.meters m
      where m.id = b.meter_id
      offset 0
    ) m on true
), begun as (
  -- Meters of an account and commodity that were first billed on the same day count as one.
  select
    *,
    max(until) over same_day as until_of_day,
    row_number() over same_day = 1 as is_first_of_day
  from placed
  window same_day as (partition by company_id, account, datasource_type, first_day)
), neighboured as (
  select
    *,
    array_agg(first_day) filter (where is_first_of_day) over neighbours as first_days,
    array_agg(until_of_day) filter (where is_first_of_day) over neighbours as untils
  from begun
  window neighbours as (partition by company_id, account, datasource_type)
)
select
  n.company_id, n.site_id, n.meter_id, n.days, n.until, n.usual_days,
  coalesce(least(n.ends_on, r.ends_on), 'infinity') as ends_on
from neighboured n
  cross join lateral (
    -- Another meter of the account was first billed about when the bills of this meter ended. A
    -- correction may follow, but for less than half of the usual days.
    select min(upper(part)) as ends_on
    from unnest(n.first_days, n.untils) as other (first_day, until)
      cross join unnest(n.days) as part
    where other.first_day > n.first_day
      and other.until >= n.until
      and abs(upper(part) - other.first_day) <= metersync.days_to_next_bill(n.usual_days)
      and metersync.days_in(n.days * datemultirange(daterange(upper(part), null)))
        <= coalesce(n.usual_days, 31) / 2
  ) r
