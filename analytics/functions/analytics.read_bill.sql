-- Reads the fields of a document's record; each is NULL where the record has another type.
create or replace function analytics.read_bill(raw jsonb)
returns table (
  account_number text,
  provider text,
  invoice_id text,
  start_date date,
  end_date date,
  bill_date date,
  due_date date,
  currency text,
  total_charges numeric,
  current_charges numeric,
  credits numeric,
  tax_charges numeric,
  interest_charges numeric,
  previous_balance numeric,
  previous_payment numeric,
  open_balance numeric,
  source_type text,
  status text,
  is_flagged boolean,
  flagged_status text,
  is_estimated boolean,
  notes text,
  file_name text,
  job_id text,
  audit_trail_url text,
  usage_rows integer
)
language sql stable parallel safe
begin atomic
  select
    nullif(r."accountNumber", ''),
    nullif(r."utilityCompany", ''),
    nullif(r."invoiceId", ''),
    coalesce(
      metersync.date_of(r."startDate"),
      (
        select min(metersync.date_of(u ->> 'startDate'))
        from jsonb_array_elements(metersync.elements(r."usageData")) u
      )
    ),
    coalesce(
      metersync.date_of(r."endDate"),
      (
        select max(metersync.date_of(u ->> 'endDate'))
        from jsonb_array_elements(metersync.elements(r."usageData")) u
      )
    ),
    metersync.date_of(r."billDate"),
    metersync.date_of(r."dueDate"),
    nullif(r."chargesUnits", ''),
    metersync.number_of(r."totalCharges"),
    metersync.number_of(r."currentCharges"),
    metersync.number_of(r."credits"),
    metersync.number_of(r."taxCharges"),
    metersync.number_of(r."interestCharges"),
    metersync.number_of(r."previousCloseBalance"),
    metersync.number_of(r."afterPreviousTotalPayment"),
    metersync.number_of(r."currentOpenBalance"),
    nullif(r."sourceType", ''),
    nullif(r."status", ''),
    metersync.boolean_of(r."isFlagged"),
    nullif(r."flaggedStatus", ''),
    metersync.boolean_of(r."isEstimated"),
    nullif(r."notes", ''),
    nullif(r."fileName", ''),
    nullif(r."jobId", ''),
    nullif(r."auditTrailUrl", ''),
    jsonb_array_length(metersync.elements(r."usageData"))
  from jsonb_to_record(case when jsonb_typeof(raw) = 'object' then raw else '{}' end) as r (
    "accountNumber" text,
    "utilityCompany" text,
    "invoiceId" text,
    "startDate" text,
    "endDate" text,
    "billDate" text,
    "dueDate" text,
    "chargesUnits" text,
    "totalCharges" text,
    "currentCharges" text,
    "credits" text,
    "taxCharges" text,
    "interestCharges" text,
    "previousCloseBalance" text,
    "afterPreviousTotalPayment" text,
    "currentOpenBalance" text,
    "sourceType" text,
    "status" text,
    "isFlagged" text,
    "flaggedStatus" text,
    "isEstimated" text,
    "notes" text,
    "fileName" text,
    "jobId" text,
    "auditTrailUrl" text,
    "usageData" jsonb
  )
  -- Each field is read once, not wherever it is used.
  offset 0;
end;

comment on function analytics.read_bill is 'The fields of a document''s record.';
