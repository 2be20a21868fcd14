create or replace view analytics.bills_all as {{bills documents="utility.documents" at="null"}};

comment on view analytics.bills_all is 'One row for each document.';
comment on column analytics.bills_all.bill_id is 'Bill.';
comment on column analytics.bills_all.site_id is 'Site that the document names; of several one.';
comment on column analytics.bills_all.account_number is 'Account number.';
comment on column analytics.bills_all.provider is 'Utility that bills.';
comment on column analytics.bills_all.invoice_id is 'The utility''s number of the bill.';
comment on column analytics.bills_all.period_start is 'Period start.';
comment on column analytics.bills_all.period_end is 'Period end.';
comment on column analytics.bills_all.period is 'Days, half-open.';
comment on column analytics.bills_all.period_days is 'Period days.';
comment on column analytics.bills_all.boundary_rule is
  'How dates became period: end_inclusive; shared_day_to_next: the next bill has the end day; '
  'one_day: no other end; dates_swapped; no_dates.';
comment on column analytics.bills_all.bill_date is 'End of the period, by the service.';
comment on column analytics.bills_all.due_date is 'Due date.';
comment on column analytics.bills_all.currency is 'Currency of the amounts.';
comment on column analytics.bills_all.cost is 'current_charges, else total_charges.';
comment on column analytics.bills_all.cost_source is 'Which of the two cost is.';
comment on column analytics.bills_all.total_charges is 'Amount due, with balances.';
comment on column analytics.bills_all.current_charges is 'Current charges.';
comment on column analytics.bills_all.credits is 'Credits.';
comment on column analytics.bills_all.tax_charges is 'Tax charges.';
comment on column analytics.bills_all.interest_charges is 'Interest charges.';
comment on column analytics.bills_all.previous_balance is 'Previous balance.';
comment on column analytics.bills_all.previous_payment is 'Previous payment.';
comment on column analytics.bills_all.open_balance is 'Open balance.';
comment on column analytics.bills_all.source_type is 'Source type.';
comment on column analytics.bills_all.status is 'Status.';
comment on column analytics.bills_all.is_flagged is 'Whether the service doubts it.';
comment on column analytics.bills_all.flagged_status is 'Flagged status.';
comment on column analytics.bills_all.is_estimated is 'Whether any of its usage is estimated.';
comment on column analytics.bills_all.notes is 'Notes.';
comment on column analytics.bills_all.file_name is 'File name.';
comment on column analytics.bills_all.job_id is 'Job id.';
comment on column analytics.bills_all.audit_trail_url is 'Audit trail url.';
comment on column analytics.bills_all.usage_rows is 'Usage rows.';
comment on column analytics.bills_all.is_effective is 'Whether it counts.';
comment on column analytics.bills_all.reason is
  'Why it does not count: deleted, superseded or not_read.';
comment on column analytics.bills_all.superseded_by is
  'The live document at the end of its chain.';
comment on column analytics.bills_all.revised_document_id is
  'The document that superseded it, by the service.';
