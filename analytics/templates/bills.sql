-- Every bill, with the reason why it does not count. The same text serves current bills and bills
-- as of a time, because a view has no parameters, and a function in a view would need rights to
-- tables for each reader. Arguments: documents, the rows d to read; at, their time, null for now;
-- parts, further columns of d to read; more, further columns to return.
with documents as (
  select
    d.id as bill_id,
    d.company_id, d.site_id, d.raw, d.created, d.updated, d.api_version, d.revised_document_id,
    d.deleted_at, d.deleted_reason, s.superseded_by {{parts}}
  from {{documents}} d
    cross join lateral (
      select case
        when d.revised_document_id is not null and d.deleted_at is null
          then coalesce(
            -- Most links lead to a document that counts. Then the chain need not be followed.
            (
              select n.id
              from utility.documents n
              where {{at}} is null
                and n.id = d.revised_document_id
                and n.revised_document_id is null
                and n.deleted_at is null
            ),
            analytics.superseded_by(d.id, {{at}})
          )
      end as superseded_by
      offset 0
    ) s
), judged as (
  select
    *,
    case
      when deleted_at is not null then 'deleted'
      when raw is null then 'not_read'
      when superseded_by is not null then 'superseded'
    end as reason
  from documents
), read_bills as (
  select
    j.*,
    -- The planner expects half of all bills for this condition. For "reason is null" it would
    -- expect one bill in two hundred, and compare each of these with all rows that bills are
    -- joined to.
    case when j.reason is null then true else false end as is_effective,
    b.*,
    coalesce(b.account_number, j.bill_id::text) as account,
    p.period_start, p.period_end
  from judged j
    cross join lateral analytics.read_bill(j.raw) b
    cross join lateral (
      select
        metersync.first_day(b.start_date, b.end_date) as period_start,
        metersync.last_day(b.start_date, b.end_date) as period_end
      offset 0
    ) p
), neighboured as (
  select
    *,
    coalesce(
      -- A bill for water is not a neighbour of a bill for electricity.
      period_end > period_start
        and period_end = min(period_start) over (
          partition by company_id, account, commodity, is_effective
          order by period_start groups between 1 following and 1 following
        ),
      false
    )::integer as shared_days
  from read_bills
)
select
  bill_id, n.company_id, n.site_id, account_number, provider, invoice_id, period_start, period_end,
  case
    when period_start is not null then daterange(period_start, period_end + 1 - shared_days)
  end as period,
  period_end + 1 - shared_days - period_start as period_days,
  case
    when period_start is null then 'no_dates'
    when shared_days = 1 then 'shared_day_to_next'
    when end_date < start_date then 'dates_swapped'
    when period_start = period_end then 'one_day'
    else 'end_inclusive'
  end as boundary_rule,
  bill_date, due_date, currency,
  coalesce(current_charges, total_charges) as cost,
  case
    when current_charges is not null then 'current_charges'
    when total_charges is not null then 'total_charges'
  end as cost_source,
  total_charges, current_charges, credits, tax_charges, interest_charges, previous_balance,
  previous_payment, open_balance, source_type, status, is_flagged, flagged_status,
  -- The usage that the service lists for a bill need not be on its document.
  (
    select coalesce(
      n.is_estimated or bool_or(u.is_estimated),
      n.is_estimated, bool_or(u.is_estimated)
    )
    from utility.usage_data u
    where {{at}} is null
      and u.document_id = n.bill_id
      and u.deleted_at is null
  ) as is_estimated,
  notes, file_name, job_id, audit_trail_url, usage_rows, n.created, n.updated, n.api_version,
  is_effective, reason, superseded_by, revised_document_id, n.deleted_at, n.deleted_reason,
  period_start as first_day,
  period_end - shared_days as last_day,
  end_date as service_end_date,
  c.name as company,
  s.name as site {{more}}
from neighboured n
  left join utility.companies c on c.id = n.company_id
  left join utility.sites s on s.id = n.site_id
