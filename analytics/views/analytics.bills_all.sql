create or replace view analytics.bills_all as {{bills documents="utility.documents" at="null"}};

comment on view analytics.bills_all is
  'One row for each document: those that count (is_effective) and, with the reason, those that '
  'do not.';
comment on column analytics.bills_all.bill_id is 'The document.';
comment on column analytics.bills_all.site_id is
  'Site that the document names; a bill over several sites has one of them: see usage for each '
  'meter''s.';
comment on column analytics.bills_all.account_number is 'Account at the provider.';
comment on column analytics.bills_all.provider is 'Utility that sent the bill.';
comment on column analytics.bills_all.invoice_id is 'The utility''s number of the bill.';
comment on column analytics.bills_all.period_start is
  'First day, as the service sent it (of its usage where the document says none).';
comment on column analytics.bills_all.period_end is 'Last day, as the service sent it.';
comment on column analytics.bills_all.period is 'Days that the bill is for, half-open.';
comment on column analytics.bills_all.period_days is 'Days in period.';
comment on column analytics.bills_all.boundary_rule is
  'How period was made of the dates: end_inclusive: the end is the last day; shared_day_to_next: '
  'the account''s next bill of the same commodity starts on the end day, which belongs to that '
  'one; one_day: start and end are the same, as the service sends when the end is unknown; '
  'dates_swapped: the end was before the start; no_dates.';
comment on column analytics.bills_all.bill_date is
  'End of the billing period, as the service has it.';
comment on column analytics.bills_all.due_date is 'When it is to be paid.';
comment on column analytics.bills_all.currency is
  'Currency of every amount of the bill: never add amounts of several.';
comment on column analytics.bills_all.cost is
  'What the period cost: current_charges, else total_charges.';
comment on column analytics.bills_all.cost_source is
  'Which of the two cost is; total_charges can hold an earlier balance.';
comment on column analytics.bills_all.total_charges is
  'Amount due, with what was open from before.';
comment on column analytics.bills_all.current_charges is 'Charges of this period.';
comment on column analytics.bills_all.credits is 'Credits.';
comment on column analytics.bills_all.tax_charges is 'Taxes in the charges.';
comment on column analytics.bills_all.interest_charges is 'Interest and late fees.';
comment on column analytics.bills_all.previous_balance is 'Balance of the bill before.';
comment on column analytics.bills_all.previous_payment is 'What was paid since.';
comment on column analytics.bills_all.open_balance is 'What was still open.';
comment on column analytics.bills_all.source_type is 'How the service came by it.';
comment on column analytics.bills_all.status is 'Status of the document at the service.';
comment on column analytics.bills_all.is_flagged is 'Whether the service doubts it.';
comment on column analytics.bills_all.flagged_status is 'Why.';
comment on column analytics.bills_all.is_estimated is
  'Whether any of its usage is estimated; only the newer versions of the API say.';
comment on column analytics.bills_all.notes is 'Notes of the service.';
comment on column analytics.bills_all.file_name is 'Name of the file it was read from.';
comment on column analytics.bills_all.job_id is 'Job that read it.';
comment on column analytics.bills_all.audit_trail_url is
  'Where the service shows how it was read.';
comment on column analytics.bills_all.usage_rows is 'Usage records on the document.';
comment on column analytics.bills_all.is_effective is
  'Whether it counts: it lives, was read, and no live document superseded it.';
comment on column analytics.bills_all.reason is
  'Why it does not count: deleted, superseded or not_read; NULL when it does.';
comment on column analytics.bills_all.superseded_by is
  'The live document at the end of the chain of those that superseded it.';
comment on column analytics.bills_all.revised_document_id is
  'The service''s link to the document that superseded it.';
