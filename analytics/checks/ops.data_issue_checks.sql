-- The checks, each with its severity.
-- A check finds rows of evidence, by which ops.refresh_data_issues opens and closes issues. For
-- new_field, which concerns no company, db/checks/check-data.ts does so.
-- ops.issue_sentence fills the sentence with the figures of the evidence.
create or replace view ops.data_issue_checks as
select *
from (
  values
    (
      'bill_gap', 'bills', 'meter', 'warning',
      'Days between two bills of a meter that no bill covers, while bills of the meter are '
      'expected. One or two such days have the severity info.',
      'No bill covers {from} to {last_day} ({extent}).'
    ),
    (
      'bill_overlap', 'bills', 'meter', 'warning',
      'Days that more than one bill of a meter covers. The single day that a bill may share with '
      'the next bill does not count.',
      'More than one bill covers {from} to {last_day} ({days} days).'
    ),
    (
      'duplicate_bill', 'bills', 'document', 'error',
      'A bill like an earlier bill, which is neither superseded nor deleted: the same meters, '
      'days, usage and cost; the same account, provider and bill date; or the same invoice number '
      'of one provider. Bills with one invoice number for other meters or days have the severity '
      'info. Credits, and bills that a credit cancels, are not compared by their numbers.',
      'The bill is like bill {same_as}: the same {by}.'
    ),
    (
      'unusual_period', 'bills', 'document', 'warning',
      'A bill for more than 65 days, or for less than 20, where the account''s bills usually are '
      'not.',
      'The bill is for {days} days; the account''s bills are usually for {usual_days}.'
    ),
    (
      'future_period', 'bills', 'document', 'warning',
      'A bill whose period ends in the future.',
      'The bill''s period ends in the future, on {period_end}.'
    ),
    (
      'amount_mismatch', 'bills', 'document', 'error',
      'Charges of the period that differ from the sum of the bill''s lines by more than 0.01.',
      'The bill charges {current_charges} {currency}, its lines sum to {lines}.'
    ),
    (
      'usage_mismatch', 'bills', 'document', 'error',
      'Usage of the document that differs from the sum of its usage records.',
      'The bill states {on_document} {units|without a unit}, its usage records sum to '
      '{in_records|none}.'
    ),
    (
      'usage_spike', 'bills', 'document', 'warning',
      'Usage per day that is at least three times the highest of the four years before. The '
      'highest tenth of those bills does not count. Only meters with at least five earlier bills '
      'are checked.',
      'The bill states {per_day} {units} a day; at most {usual_highest} was usual before.'
    ),
    (
      'hidden_estimate', 'bills', 'meter', 'warning',
      'Three or more bills in a row with exactly the same usage per day.',
      'The meter has {count} bills in a row with exactly the same {per_day} {units} a day, the '
      'first from {subject} on.'
    ),
    (
      'zero_usage_with_cost', 'bills', 'document', 'info',
      'A bill that costs something though nothing was used.',
      'The bill costs {cost} {currency} though nothing was used.'
    ),
    (
      'negative_usage', 'bills', 'usage', 'warning',
      'Negative usage that is neither exported nor excluded, on a bill without credits.',
      'Usage is negative: {usage} {units|without a unit}, on a bill without credits.'
    ),
    (
      'unit_changed', 'bills', 'usage', 'warning',
      'Usage in another unit than on the previous bill of the meter.',
      'Usage is in {units}; the previous bill of the meter was in {before}.'
    ),
    (
      'currency_changed', 'bills', 'document', 'error',
      'A bill in another currency than the previous bill of the account.',
      'The bill is in {currency}; the previous bill of the account was in {before}.'
    ),
    (
      'bad_dates', 'bills', 'usage', 'warning',
      'Usage without dates, with an end before its start, or with an end equal to its start (the '
      'service sends an unknown end like this).',
      'Usage from {start|no date} to {end|no date}: {problem}.'
    ),
    (
      'late_bill', 'bills', 'meter', 'warning',
      'No bill for more than one and a half times the usual number of days between the meter''s '
      'bills, while bills of the meter are expected. Only meters with at least three bills are '
      'checked.',
      'The next bill is {days_late} days late: the meter is billed until {billed_until}, usually '
      'every {usual_days} days.'
    ),
    (
      'orphan', 'bills', 'usage', 'error',
      'Usage whose document or meter is not in the warehouse.',
      'Usage names {missing}, which the warehouse does not have.'
    ),
    (
      'unknown_unit', 'bills', 'meter', 'info',
      'Usage in a unit without a factor in ops.unit_factors: it cannot be added to usage in other '
      'units.',
      'Usage is in {units|no unit}, for which ops.unit_factors has no factor ({records} records).'
    ),
    (
      'unknown_commodity', 'bills', 'meter', 'info',
      'A commodity that the documentation of the service does not list.',
      'The documentation of the service does not list the commodity {datasource_type}.'
    ),
    (
      'unusable_amount', 'bills', 'document', 'error',
      'An amount with too many digits for calculations: the record keeps it, and views leave it '
      'out.',
      'Views leave out the bill''s {field}, because it has too many digits for calculations.'
    ),
    (
      'unreadable_value', 'bills', 'record', 'error',
      'A value of a record that no column can hold, for example the amount N/A or a date that '
      'does not exist: the column is NULL, and raw has the value. Or a text with NUL or half of a '
      'surrogate pair, which Postgres cannot hold: raw has U+FFFD instead, and unreadable has the '
      'text as it was sent.',
      'The {field} of the {entity_type} cannot be read: {said}.'
    ),
    (
      'unknown_status', 'connections', 'connection', 'info',
      'A status that the documentation of the service does not list.',
      'The documentation of the service does not list the status {status}.'
    ),
    (
      'unhealthy_connection', 'connections', 'connection', 'error',
      'A connection that has collected nothing for more than 7 days.',
      'The connection is {status|without a status} since {since|an unknown day} and collects '
      'nothing. To do: {what_to_do}.'
    ),
    (
      'interval_coverage', 'intervals', 'meter', 'warning',
      'Readings that cover less than 95 % of a month, between the meter''s first and last day.',
      'Readings cover {percent} % of {from} to {last_day}.'
    ),
    (
      'clock_change', 'intervals', 'meter', 'warning',
      'A day of 23 or 25 hours with the readings of 24 hours: their times may be local times, or '
      'times of another time zone.',
      '{day} has {readings} readings instead of {expected}: their times may not be of {time_zone}.'
    ),
    (
      'interval_bill_mismatch', 'intervals', 'usage', 'warning',
      'Readings that cover all days of a bill, and differ from its usage by more than 2 %.',
      'The bill states {billed} {units}, the readings of its days sum to {readings}.'
    ),
    (
      'unusable_reading', 'intervals', 'meter', 'error',
      'Readings without an amount, or with too many digits for calculations: the table keeps '
      'them, and views leave them out.',
      'Views leave out {readings} readings without an amount or with too many digits for '
      'calculations.'
    ),
    (
      'unreadable_reading', 'intervals', 'meter', 'error',
      'Readings with a value that no column can hold, for example the usage N/A: the column is '
      'NULL. Or with NUL or half of a surrogate pair in a text: the column has U+FFFD instead.',
      'A value of {readings} readings cannot be read, the first of {since}: its {field} is {said}.'
    ),
    (
      'several_readings', 'intervals', 'meter', 'info',
      'Several readings of a meter with the same start, length and unit, as a meter with solar '
      'panels may have them. All are kept, and the views of analytics sum them.',
      'The meter has several readings of {times} times since {since}, for example {amounts} '
      '{units|without a unit}. The views of analytics sum them.'
    ),
    (
      'no_time_zone', 'intervals', 'company', 'info',
      'Sites with readings for which no time zone is set: their days and hours are in UTC.',
      'No time zone is set for {sites} sites with readings: their days and hours are in UTC. Set '
      'it with metersync sites.'
    ),
    (
      'unknown_quality', 'intervals', 'meter', 'info',
      'A quality of readings that is not in the standard list, and not a known other name for a '
      'quality in the list.',
      'The quality {quality} of {readings} readings is not in the standard list.'
    ),
    (
      'new_field', 'fields', 'field', 'info',
      'A field that the service began to send within the last 30 days, after a backfill of all '
      'companies was complete.',
      'The service has sent the field {path} of {resource} since {since}.'
    )
) as checks (check_name, run_with, entity_type, severity, what, sentence);
comment on view ops.data_issue_checks is 'The checks of the data.';
comment on column ops.data_issue_checks.run_with is
  'Which checks run together: intervals after each backfill, the others also after each reconcile.';
comment on column ops.data_issue_checks.entity_type is
  'document, usage, meter, connection, company, field, or record (one of the first five or a '
  'site).';
comment on column ops.data_issue_checks.what is 'What it finds.';
comment on column ops.data_issue_checks.sentence is
  'Template of the sentence for an issue, with figures of its evidence in braces.';
