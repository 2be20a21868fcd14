-- Returns the bills of a company with the sum of their lines and the usage that they list.
-- Each record is unpacked once.
create or replace function metersync.bills_to_check (company uuid)
returns table (
  bill_id uuid, account_number text, provider text, invoice_id text, bill_date date,
  period_start date, period_end date, period_days integer, boundary_rule text, currency text,
  cost numeric, current_charges numeric, credits numeric, created timestamptz, lines numeric,
  usage_rows jsonb, unusable text[]
)
language sql stable rows 1000
set enable_hashjoin = off
set enable_mergejoin = off
set enable_memoize = off as $$
  with unpacked as (
    -- The whole record in one piece. Otherwise Postgres would decompress it wherever a field is
    -- read.
    select
      d.id, d.company_id, d.site_id,
      one.record as raw,
      d.created, d.updated, d.api_version, d.revised_document_id, d.deleted_at, d.deleted_reason,
      l.amount as lines,
      r.usage_data, r.unusable
    from utility.documents d
      cross join lateral (select d.raw #> '{}' as record offset 0) one
      cross join lateral (
        select
          metersync.elements(record -> 'lineItems') as line_items,
          metersync.elements(record -> 'usageData') as usage_data,
          -- The amounts whose text is too long for metersync.number_of.
          array_remove(
            array[
              case when length(record ->> 'currentCharges') > 200 then 'currentCharges' end,
              case when length(record ->> 'totalCharges') > 200 then 'totalCharges' end
            ],
            null
          ) as unusable
        offset 0
      ) r
      cross join lateral (
        select sum(metersync.number_of(item ->> 'totalCharge')) as amount
        from jsonb_array_elements(r.line_items) as item
        where metersync.is_current_line(item ->> 'billingPeriod')
      ) l
    where d.company_id = bills_to_check.company
  )
  select
    bill_id, account_number, provider, invoice_id, bill_date, period_start, period_end, period_days,
    boundary_rule, currency, cost, current_charges, credits, created, lines, usage_data, unusable
  from (
    {{bills documents="unpacked" at="null"
      parts=", d.lines, d.usage_data, d.unusable" more=", lines, usage_data, unusable"}}
  ) b
  where is_effective
$$;
