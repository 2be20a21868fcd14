create or replace view analytics.bills_all as {{bills documents="utility.documents" at="null"}}
order by uuid_hash(bill_id);
comment on view analytics.bills_all is
  'One row for each document, with the reason if it does not count.';
comment on column analytics.bills_all.site_id is 'Site of the document, or one of several.';
comment on column analytics.bills_all.first_day is 'First day of the period, or else of its usage.';
comment on column analytics.bills_all.last_day is
  'Last day that is billed: a day before service_end_date if the next bill starts then.';
comment on column analytics.bills_all.service_end_date is 'Last day, as the service sent it.';
comment on column analytics.bills_all.period_start is 'Same as first_day.';
comment on column analytics.bills_all.period_end is
  'The later of the two dates that the service sent.';
comment on column analytics.bills_all.boundary_rule is
  'How dates became the period: end_inclusive, shared_day_to_next (the end belongs to the next '
  'bill), one_day (the end is the start or missing), dates_swapped or no_dates.';
comment on column analytics.bills_all.account_number is
  'Account number on the document, or else of its usage.';
comment on column analytics.bills_all.bill_date is 'End of the billing period, by the service.';
comment on column analytics.bills_all.cost is 'current_charges, or else total_charges.';
comment on column analytics.bills_all.cost_source is 'Which of the two cost is.';
comment on column analytics.bills_all.total_charges is 'Amount due, with earlier balances.';
comment on column analytics.bills_all.interest_charges is 'Interest and late fees.';
comment on column analytics.bills_all.status is 'Status of the bill, by the service.';
comment on column analytics.bills_all.is_flagged is 'Whether the service doubts it.';
comment on column analytics.bills_all.is_estimated is 'Whether any of its usage is estimated.';
comment on column analytics.bills_all.usage_rows is 'Number of its usage records.';
comment on column analytics.bills_all.is_effective is 'Whether it counts.';
comment on column analytics.bills_all.reason is
  'Why it does not count: deleted, superseded or not_read.';
comment on column analytics.bills_all.superseded_by is 'The live bill at the end of its chain.';
comment on column analytics.bills_all.revised_document_id is
  'Document that superseded it, by the service.';
