-- The checks, each with its severity.
-- A check finds rows of evidence; ops.refresh_data_issues opens and closes issues by them.
create or replace view ops.data_issue_checks as
select *
from (
  values
    (
      'bill_gap',
      'bills',
      'meter',
      'warning',
      'Days between two bills of a meter that no bill is for.'
    ),
    (
      'bill_overlap',
      'bills',
      'meter',
      'warning',
      'Days that more than one bill of a meter is for; the one day that a bill may share with '
      'the next does not count.'
    ),
    (
      'duplicate_bill',
      'bills',
      'document',
      'error',
      'A bill like an earlier one, which is neither superseded nor deleted: the same meters, '
      'days and cost, or the same account, provider and bill date.'
    ),
    (
      'unusual_period',
      'bills',
      'document',
      'warning',
      'A bill for more than 65 days, or for less than 20, where the account''s bills usually '
      'are not.'
    ),
    (
      'future_period',
      'bills',
      'document',
      'warning',
      'A bill whose period ends in the future.'
    ),
    (
      'amount_mismatch',
      'bills',
      'document',
      'error',
      'Charges of the period that differ from the sum of the bill''s lines by more than 0.01.'
    ),
    (
      'usage_mismatch',
      'bills',
      'document',
      'error',
      'Usage of the document that differs from the sum of its usage records.'
    ),
    (
      'usage_spike',
      'bills',
      'document',
      'warning',
      'Use a day at least three times the highest of the four years before, whose highest tenth '
      'is left out; of meters with five bills before.'
    ),
    (
      'hidden_estimate',
      'bills',
      'meter',
      'warning',
      'Three or more bills in a row with the very same use a day.'
    ),
    (
      'zero_usage_with_cost',
      'bills',
      'document',
      'info',
      'A bill that costs something though nothing was used.'
    ),
    (
      'negative_usage',
      'bills',
      'usage',
      'warning',
      'Negative usage that is neither exported nor excluded, on a bill without credits.'
    ),
    (
      'unit_changed',
      'bills',
      'usage',
      'warning',
      'Usage in another unit than on the meter''s bill before.'
    ),
    (
      'currency_changed',
      'bills',
      'document',
      'error',
      'A bill in another currency than the account''s bill before.'
    ),
    (
      'bad_dates',
      'bills',
      'usage',
      'warning',
      'Usage without dates, whose end is its start (so is an unknown end sent), or whose end is '
      'before its start.'
    ),
    (
      'late_bill',
      'bills',
      'meter',
      'warning',
      'No bill for more than one and a half times the usual days between the meter''s bills; of '
      'meters with three.'
    ),
    ('orphan', 'bills', 'usage', 'error', 'Usage whose document or meter is not there.'),
    (
      'unknown_unit',
      'bills',
      'meter',
      'info',
      'Usage in a unit without a factor in ops.unit_factors: it cannot be added to others.'
    ),
    (
      'unknown_commodity',
      'bills',
      'meter',
      'info',
      'A commodity that is none of those documented.'
    ),
    (
      'unusable_amount',
      'bills',
      'document',
      'error',
      'An amount of more digits than can be reckoned with: the record keeps it, views leave it '
      'out.'
    ),
    (
      'unknown_status',
      'connections',
      'connection',
      'info',
      'A status that is none of those documented.'
    ),
    (
      'unhealthy_connection',
      'connections',
      'connection',
      'error',
      'A connection that has collected nothing for more than 7 days.'
    ),
    (
      'interval_coverage',
      'intervals',
      'meter',
      'warning',
      'Readings that cover less than 95 % of a month, between the meter''s first and last.'
    ),
    (
      'clock_change',
      'intervals',
      'meter',
      'warning',
      'A day of 23 or 25 hours with the readings of 24: their times may be local, or of another '
      'time zone.'
    ),
    (
      'interval_bill_mismatch',
      'intervals',
      'usage',
      'warning',
      'Readings that cover all days of a bill, and differ from its usage by more than 2 %.'
    ),
    (
      'unusable_reading',
      'intervals',
      'meter',
      'error',
      'Readings of more digits than can be reckoned with: the table keeps them, views leave '
      'them out.'
    ),
    (
      'unknown_quality',
      'intervals',
      'meter',
      'info',
      'A quality of readings that is none of the standard list, nor known as one of them.'
    )
) as checks(check_name, run_with, entity_type, severity, what);

comment on view ops.data_issue_checks is 'The checks of the data.';
comment on column ops.data_issue_checks.check_name is 'Check name.';
comment on column ops.data_issue_checks.run_with is
  'bills, connections: after each run; intervals: after each backfill.';
comment on column ops.data_issue_checks.entity_type is 'document, usage, meter or connection.';
comment on column ops.data_issue_checks.severity is
  'error: numbers are wrong; warning: look at it; info: good to know.';
comment on column ops.data_issue_checks.what is 'What it finds.';
