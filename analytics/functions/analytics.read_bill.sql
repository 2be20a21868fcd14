-- Reads the fields of a document's record. A field is NULL if its value in the record has another
-- type. The account and the dates are those of the usage on the document if the document itself
-- has none; the commodity and whether usage is estimated always are.
create or replace function analytics.read_bill (raw jsonb)
returns table (
  account_number text, provider text, invoice_id text, start_date date, end_date date,
  bill_date date, due_date date, currency text, total_charges numeric, current_charges numeric,
  credits numeric, tax_charges numeric, interest_charges numeric, previous_balance numeric,
  previous_payment numeric, open_balance numeric, source_type text, status text, is_flagged boolean,
  flagged_status text, is_estimated boolean, notes text, file_name text, job_id text,
  audit_trail_url text, usage_rows integer, commodity text
)
language sql stable parallel safe
begin atomic
  select
    coalesce(
      nullif(r.account_number, ''),
      -- The first account in alphabetical order, because the order of the usage may change.
      (
        select min(i ->> 'value')
        from jsonb_array_elements(metersync.elements(r.usage_data)) u
          cross join jsonb_array_elements(metersync.elements(u -> 'identifiers')) i
        where i ->> 'name' = 'ACCOUNT'
          and i ->> 'value' <> ''
      )
    ) as account_number,
    nullif(r.utility_company, '') as provider, nullif(r.invoice_id, '') as invoice_id,
    coalesce(
      metersync.date_of(r.start_date),
      (
        select min(metersync.date_of(u ->> 'startDate'))
        from jsonb_array_elements(metersync.elements(r.usage_data)) u
      )
    ) as start_date,
    coalesce(
      metersync.date_of(r.end_date),
      (
        select max(metersync.date_of(u ->> 'endDate'))
        from jsonb_array_elements(metersync.elements(r.usage_data)) u
      )
    ) as end_date,
    metersync.date_of(r.bill_date) as bill_date,
    metersync.date_of(r.due_date) as due_date,
    metersync.currency_of(r.charges_units) as currency,
    metersync.number_of(r.total_charges) as total_charges,
    metersync.number_of(r.current_charges) as current_charges,
    metersync.number_of(r.credits) as credits,
    metersync.number_of(r.tax_charges) as tax_charges,
    metersync.number_of(r.interest_charges) as interest_charges,
    metersync.number_of(r.previous_close_balance) as previous_balance,
    metersync.number_of(r.after_previous_total_payment) as previous_payment,
    metersync.number_of(r.current_open_balance) as open_balance,
    nullif(r.source_type, '') as source_type,
    nullif(r.status, '') as status,
    metersync.boolean_of(r.is_flagged) as is_flagged,
    nullif(r.flagged_status, '') as flagged_status,
    (
      select bool_or(metersync.boolean_of(u ->> 'isEstimated'))
      from jsonb_array_elements(metersync.elements(r.usage_data)) u
    ) as is_estimated,
    nullif(r.notes, '') as notes,
    nullif(r.file_name, '') as file_name,
    nullif(r.job_id, '') as job_id,
    nullif(r.audit_trail_url, '') as audit_trail_url,
    jsonb_array_length(metersync.elements(r.usage_data)) as usage_rows,
    -- The first commodity of the bill, in alphabetical order.
    (
      select min(u ->> 'datasourceType')
      from jsonb_array_elements(metersync.elements(r.usage_data)) u
    ) as commodity
  from (
    -- The whole record in one piece. Otherwise Postgres would decompress it for each field.
    select raw #> '{}' as record
    offset 0
  ) one
    cross join lateral (
      -- Each field is read once, not wherever it is used, and only if it is asked for.
      select
        record ->> 'accountNumber' as account_number,
        record ->> 'utilityCompany' as utility_company,
        record ->> 'invoiceId' as invoice_id,
        record ->> 'startDate' as start_date,
        record ->> 'endDate' as end_date,
        record ->> 'billDate' as bill_date,
        record ->> 'dueDate' as due_date,
        record ->> 'chargesUnits' as charges_units,
        record ->> 'totalCharges' as total_charges,
        record ->> 'currentCharges' as current_charges,
        record ->> 'credits' as credits,
        record ->> 'taxCharges' as tax_charges,
        record ->> 'interestCharges' as interest_charges,
        record ->> 'previousCloseBalance' as previous_close_balance,
        record ->> 'afterPreviousTotalPayment' as after_previous_total_payment,
        record ->> 'currentOpenBalance' as current_open_balance,
        record ->> 'sourceType' as source_type,
        record ->> 'status' as status,
        record ->> 'isFlagged' as is_flagged,
        record ->> 'flaggedStatus' as flagged_status,
        record ->> 'notes' as notes,
        record ->> 'fileName' as file_name,
        record ->> 'jobId' as job_id,
        record ->> 'auditTrailUrl' as audit_trail_url,
        record -> 'usageData' as usage_data
      offset 0
    ) r
  offset 0;
end;
comment on function analytics.read_bill is 'The fields of a document''s record.';
