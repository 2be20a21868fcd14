-- Returns the bills of a company with the sum of their lines and the usage that they list.
-- Each record is unpacked once.
create or replace function metersync.bills_to_check (company uuid) returns table (
  bill_id uuid,
  account_number text,
  provider text,
  bill_date date,
  period_start date,
  period_end date,
  period_days integer,
  boundary_rule text,
  currency text,
  cost numeric,
  current_charges numeric,
  credits numeric,
  created timestamptz,
  lines numeric,
  usage_rows jsonb,
  unusable text[]
) language sql stable rows 1000
set
  enable_hashjoin = off
set
  enable_mergejoin = off
set
  enable_memoize = off as $$
  select
    b.bill_id,
    b.account_number,
    b.provider,
    b.bill_date,
    b.period_start,
    b.period_end,
    b.period_days,
    b.boundary_rule,
    b.currency,
    b.cost,
    b.current_charges,
    b.credits,
    b.created,
    l.amount,
    r.usage_data,
    r.unusable
  from ({{bills documents="utility.documents" at="null" more=", n.raw"}}) b
    cross join lateral (
      -- The whole record, in one piece: else Postgres would decompress it for each field.
      select b.raw #> '{}' as record
      offset 0
    ) one
    cross join lateral (
      select
        metersync.elements(record -> 'lineItems') as line_items,
        metersync.elements(record -> 'usageData') as usage_data,
        -- Text too long for metersync.number_of to read as an amount.
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
  where b.company_id = bills_to_check.company
    and b.is_effective
$$;
