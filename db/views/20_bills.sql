-- The fields of a document's record, each NULL where the record has something else.
create or replace function analytics.read_bill(raw jsonb) returns table (
  account_number text, provider text, invoice_id text, start_date date, end_date date, bill_date date, due_date date,
  currency text, total_charges numeric, current_charges numeric, credits numeric, tax_charges numeric,
  interest_charges numeric, previous_balance numeric, previous_payment numeric, open_balance numeric, source_type text,
  status text, is_flagged boolean, flagged_status text, is_estimated boolean, notes text, file_name text, job_id text,
  audit_trail_url text, usage_rows integer
) language sql stable parallel safe begin atomic
  select nullif(r."accountNumber", ''), nullif(r."utilityCompany", ''), nullif(r."invoiceId", ''),
    coalesce(metersync.date_of(r."startDate"),
      (select min(metersync.date_of(u ->> 'startDate')) from jsonb_array_elements(metersync.elements(r."usageData")) u)),
    coalesce(metersync.date_of(r."endDate"),
      (select max(metersync.date_of(u ->> 'endDate')) from jsonb_array_elements(metersync.elements(r."usageData")) u)),
    metersync.date_of(r."billDate"), metersync.date_of(r."dueDate"), nullif(r."chargesUnits", ''),
    metersync.number_of(r."totalCharges"), metersync.number_of(r."currentCharges"), metersync.number_of(r."credits"),
    metersync.number_of(r."taxCharges"), metersync.number_of(r."interestCharges"),
    metersync.number_of(r."previousCloseBalance"), metersync.number_of(r."afterPreviousTotalPayment"),
    metersync.number_of(r."currentOpenBalance"), nullif(r."sourceType", ''), nullif(r."status", ''),
    metersync.boolean_of(r."isFlagged"), nullif(r."flaggedStatus", ''), metersync.boolean_of(r."isEstimated"),
    nullif(r."notes", ''), nullif(r."fileName", ''), nullif(r."jobId", ''), nullif(r."auditTrailUrl", ''),
    jsonb_array_length(metersync.elements(r."usageData"))
  from jsonb_to_record(case when jsonb_typeof(raw) = 'object' then raw else '{}' end) as r (
    "accountNumber" text, "utilityCompany" text, "invoiceId" text, "startDate" text, "endDate" text, "billDate" text,
    "dueDate" text, "chargesUnits" text, "totalCharges" text, "currentCharges" text, "credits" text, "taxCharges" text,
    "interestCharges" text, "previousCloseBalance" text, "afterPreviousTotalPayment" text, "currentOpenBalance" text,
    "sourceType" text, "status" text, "isFlagged" text, "flaggedStatus" text, "isEstimated" text, "notes" text,
    "fileName" text, "jobId" text, "auditTrailUrl" text, "usageData" jsonb)
  offset 0; -- each field is read once, not wherever it is used
end;
comment on function analytics.read_bill is 'The fields of a document''s record.';

-- Documents as the warehouse had them at a time.
create or replace function analytics.documents_at(at timestamptz) returns table (
  id uuid, company_id uuid, site_id uuid, created timestamptz, updated timestamptz, raw jsonb, api_version text,
  deleted_at timestamptz, deleted_reason text, revised_document_id uuid
) language sql stable parallel safe as $$
  select d.id, d.company_id, d.site_id, d.created, d.updated, d.raw, d.api_version, d.deleted_at, d.deleted_reason,
    d.revised_document_id
  from utility.documents d
  where d.first_synced_at <= at and not exists (select from history.documents h where h.id = d.id and h.valid_to > at)
  union all
  select h.id, h.company_id, h.site_id, h.created, h.updated, h.raw, h.api_version, h.deleted_at, h.deleted_reason,
    h.revised_document_id
  from history.documents h
  where h.valid_from <= at and at < h.valid_to
$$;
comment on function analytics.documents_at is 'Documents as the warehouse had them at a time.';

-- One document at a time; of now when that is NULL.
create or replace function analytics.document_state(document_id uuid, at timestamptz) returns table (
  revised_document_id uuid, created timestamptz, deleted_at timestamptz
) language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
  select d.revised_document_id, d.created, d.deleted_at
  from utility.documents d
  where d.id = document_id and (at is null or d.first_synced_at <= at
    and not exists (select from history.documents h where h.id = d.id and h.valid_to > at))
  union all
  select h.revised_document_id, h.created, h.deleted_at
  from history.documents h
  where h.id = document_id and h.valid_from <= at and at < h.valid_to
$$;
comment on function analytics.document_state is 'What superseded_by needs of one document at a time.';

-- The document that took another's place, at the end of the chain of links: a deleted one passes the place on to the
-- one that superseded it, one that was not seen yet has it. In a ring of links the document created last stands.
create or replace function analytics.superseded_by(document_id uuid, at timestamptz default null) returns uuid
language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
  with recursive chain (id, next, created, live, path) as (
    select document_id, s.revised_document_id, s.created, s.deleted_at is null, array[document_id]
    from analytics.document_state(document_id, at) s
    union all
    select c.next, s.revised_document_id, s.created, s.deleted_at is null, c.path || c.next
    from chain c left join lateral analytics.document_state(c.next, at) s on true
    where c.next is not null and c.next <> all (c.path)
  ), ring (closed) as (
    select coalesce(next = document_id, false) from chain order by cardinality(path) desc limit 1
  )
  select nullif((
    select c.id from chain c, ring r where c.live and (r.closed or c.id <> document_id)
    order by case when r.closed then c.created end desc nulls last, case when r.closed then c.id end desc,
      cardinality(c.path) desc
    limit 1
  ), document_id)
$$;
comment on function analytics.superseded_by is 'The live document at the end of the chain of documents that superseded this one; NULL when it stands.';

-- Every bill, with the reason why it does not count where it doesn't. One text for bills as they are and as they were: a
-- view takes no time, and of a function in a view each reader would need rights to the tables. That of earlier times
-- runs with its owner's rights, as analysts read history through views alone.
do $make$
declare
  bills text := $bills$
    select bill_id, company_id, site_id, account_number, provider, invoice_id, period_start, period_end,
      case when period_start is not null then daterange(period_start, period_end + 1 - shared) end as period,
      period_end + 1 - shared - period_start as period_days,
      case
        when period_start is null then 'no_dates'
        when shared = 1 then 'shared_day_to_next'
        when end_date < start_date then 'dates_swapped'
        when period_start = period_end then 'one_day'
        else 'end_inclusive'
      end as boundary_rule,
      bill_date, due_date, currency, coalesce(current_charges, total_charges) as cost,
      case when current_charges is not null then 'current_charges' when total_charges is not null then 'total_charges' end
        as cost_source,
      total_charges, current_charges, credits, tax_charges, interest_charges, previous_balance, previous_payment, open_balance,
      source_type, status, is_flagged, flagged_status, is_estimated, notes, file_name, job_id, audit_trail_url, usage_rows,
      created, updated, api_version, is_effective, reason, superseded_by, revised_document_id, deleted_at, deleted_reason,
      bill_id as document_id %3$s
    from (
      select *, coalesce(period_end > period_start and period_end = min(period_start) over (
          partition by company_id, account, commodity, is_effective order by period_start
          groups between 1 following and 1 following), false)::integer as shared
      from (
        select d.id as bill_id, d.company_id, d.site_id, b.*, p.period_start, p.period_end, coalesce(b.account_number, d.id::text) as account,
          -- The first of what it bills: a bill for water between two for electricity is no neighbour of theirs.
          (select min(u ->> 'datasourceType') from jsonb_array_elements(metersync.elements(d.raw -> 'usageData')) as u) as commodity,
          d.created, d.updated, d.api_version, s.reason is null as is_effective, s.reason, s.superseded_by,
          d.revised_document_id, d.deleted_at, d.deleted_reason, d.raw
        from %1$s d
          cross join lateral (
            select case when d.revised_document_id is not null and d.deleted_at is null
              then analytics.superseded_by(d.id, %2$s) end as superseded_by offset 0) l
          cross join lateral (
            select l.superseded_by, case when d.deleted_at is not null then 'deleted' when d.raw is null then 'not_read'
              when l.superseded_by is not null then 'superseded' end as reason) s
          cross join lateral analytics.read_bill(d.raw) b
          cross join lateral (
            select metersync.first_day(b.start_date, b.end_date) as period_start,
              metersync.last_day(b.start_date, b.end_date) as period_end
            offset 0) p
      ) read
    ) dated
  $bills$;
begin
  execute 'create or replace view analytics.bills_all as' || format(bills, 'utility.documents', 'null', '');
  create or replace view analytics.bills as select * from analytics.bills_all where is_effective;
  execute 'create or replace function analytics.bills_as_of(at timestamptz) returns setof analytics.bills
    language sql stable security definer set search_path = pg_catalog, pg_temp as $function$'
    || format(bills, 'analytics.documents_at(at)', 'at', '') || 'where is_effective $function$';
  execute 'create or replace function analytics.bills_as_of(at timestamptz, company uuid) returns setof analytics.bills
    language sql stable security definer set search_path = pg_catalog, pg_temp as $function$'
    || format(bills, '(select * from analytics.documents_at(at) where company_id = company)', 'at', '')
    || 'where is_effective $function$';
  -- Beside the bill what its lines come to, and the usage that it tells, for checks: the record is read once.
  execute format($check$
    create or replace function metersync.bills_to_check(company uuid) returns table (
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
      told jsonb,
      unusable text[]
    ) language sql stable rows 1000
    set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off
    set enable_memoize = off
    set plan_cache_mode = force_generic_plan
    as $function$
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
      from (%s) b
        cross join lateral (
          select
            metersync.elements(b.raw -> 'lineItems') as line_items,
            metersync.elements(b.raw -> 'usageData') as usage_data,
            -- What is so long that metersync.number_of takes it for no amount.
            array(
              select field
              from unnest(array['currentCharges', 'totalCharges']) as field
              where length(b.raw ->> field) > 200
            ) as unusable
          offset 0
        ) r
        cross join lateral (
          select sum(metersync.number_of(item ->> 'totalCharge')) as amount
          from jsonb_array_elements(r.line_items) as item
          where coalesce(nullif(item ->> 'billingPeriod', ''), 'CURRENT') = 'CURRENT'
        ) l
      where b.company_id = company
        and b.is_effective
    $function$
  $check$, format(bills, 'utility.documents', 'null', ', raw'));
end
$make$;
comment on function metersync.bills_to_check is 'What checks read of a company''s bills.';
comment on view analytics.bills_all is 'One row for each document: those that count (is_effective) and, with the reason, those that do not.';

comment on view analytics.bills is 'One row for each bill that counts: it lives, and no live one superseded it.';
select metersync.comment_columns(view, '{
  "bill_id": "The document.",
  "site_id": "Site that the document names; a bill over several sites has one of them: see usage for each meter''s.",
  "account_number": "Account at the provider.",
  "provider": "Utility that sent the bill.",
  "invoice_id": "The utility''s number of the bill.",
  "period_start": "First day, as the service sent it (of its usage where the document says none).",
  "period_end": "Last day, as the service sent it.",
  "period": "Days that the bill is for, half-open.",
  "period_days": "Days in period.",
  "boundary_rule": "How period was made of the dates: end_inclusive: the end is the last day; shared_day_to_next: the account''s next bill of the same commodity starts on the end day, which belongs to that one; one_day: start and end are the same, as the service sends when the end is unknown; dates_swapped: the end was before the start; no_dates.",
  "bill_date": "End of the billing period, as the service has it.",
  "due_date": "When it is to be paid.",
  "currency": "Currency of every amount of the bill: never add amounts of several.",
  "cost": "What the period cost: current_charges, else total_charges.",
  "cost_source": "Which of the two cost is; total_charges can hold an earlier balance.",
  "total_charges": "Amount due, with what was open from before.",
  "current_charges": "Charges of this period.",
  "credits": "Credits.",
  "tax_charges": "Taxes in the charges.",
  "interest_charges": "Interest and late fees.",
  "previous_balance": "Balance of the bill before.",
  "previous_payment": "What was paid since.",
  "open_balance": "What was still open.",
  "source_type": "How the service came by it.",
  "status": "Status of the document at the service.",
  "is_flagged": "Whether the service doubts it.",
  "flagged_status": "Why.",
  "is_estimated": "Whether any of its usage is estimated; only the newer versions of the API say.",
  "notes": "Notes of the service.",
  "file_name": "Name of the file it was read from.",
  "job_id": "Job that read it.",
  "audit_trail_url": "Where the service shows how it was read.",
  "usage_rows": "Usage records on the document.",
  "is_effective": "Whether it counts: it lives, was read, and no live document superseded it.",
  "reason": "Why it does not count: deleted, superseded or not_read; NULL when it does.",
  "superseded_by": "The live document at the end of the chain of those that superseded it.",
  "revised_document_id": "The service''s link to the document that superseded it."
}') from unnest(array['analytics.bills_all', 'analytics.bills']::regclass[]) as view;

comment on function analytics.bills_as_of(timestamptz) is 'analytics.bills as the warehouse would have shown it at a time, after every transaction that was over by then.';
comment on function analytics.bills_as_of(timestamptz, uuid) is 'The same of one company, without looking at the bills of others.';

create or replace view analytics.bill_line_items as
select b.bill_id, b.company_id, b.site_id, b.period, b.currency, i.seq, r."description" as description,
  nullif(r."chargeType", '') as charge_type,
  coalesce(nullif(r."electricityChargeType", ''), nullif(r."gasChargeType", '')) as supply_or_delivery,
  c.datasource_type,
  coalesce(metersync.boolean_of(r."electricityIsDemand"), false) as is_demand,
  nullif(r."electricityTimeOfUse", '') as time_of_use, metersync.number_of(r."quantity") as quantity,
  nullif(r."quantityUnits", '') as quantity_units, metersync.number_of(r."rate") as rate,
  metersync.number_of(r."totalCharge") as amount, nullif(r."billingPeriod", '') as billing_period,
  coalesce(nullif(r."billingPeriod", ''), 'CURRENT') = 'CURRENT' as is_current, r."accountIds" as account_ids,
  c.datasource_type as commodity, b.bill_id as document_id
from analytics.bills b
  join utility.documents d on d.id = b.bill_id and d.company_id = b.company_id
  cross join lateral jsonb_array_elements(metersync.elements(d.raw -> 'lineItems')) with ordinality as i (item, seq)
  cross join lateral jsonb_to_record(case when jsonb_typeof(i.item) = 'object' then i.item else '{}' end) as r (
    "description" text, "chargeType" text, "electricityChargeType" text, "gasChargeType" text, "electricityIsDemand" text,
    "electricityTimeOfUse" text, "quantity" text, "quantityUnits" text, "rate" text, "totalCharge" text,
    "billingPeriod" text, "accountIds" jsonb)
  cross join lateral (
    select case
      when r."electricityChargeType" <> '' or r."electricityIsDemand" <> '' or r."electricityTimeOfUse" <> '' then 'ELECTRICITY'
      when r."gasChargeType" <> '' then 'GAS'
    end as datasource_type) c;
comment on view analytics.bill_line_items is 'One row for each line of each bill that counts.';
select metersync.comment_columns('analytics.bill_line_items', '{
  "period": "Days that the bill is for, half-open.",
  "seq": "Place on the bill, from 1.",
  "description": "What the bill calls it.",
  "charge_type": "USAGE, FIXED, TAX, …: an open list.",
  "supply_or_delivery": "Of what the utility charges it for: SUPPLY, DELIVERY, …",
  "datasource_type": "Commodity, where the line tells.",
  "is_demand": "Whether demand is charged.",
  "time_of_use": "PEAK, OFF_PEAK, …",
  "quantity": "How many of quantity_units.",
  "quantity_units": "Unit, as the bill prints it.",
  "rate": "Price of a unit.",
  "amount": "What it costs, in currency.",
  "billing_period": "CURRENT, or the period that the line is of.",
  "is_current": "Whether it belongs to this period: lines of others are not part of its cost.",
  "account_ids": "Accounts that the line names."
}');
