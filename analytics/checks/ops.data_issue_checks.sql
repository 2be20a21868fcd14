-- The checks, each with its severity.
-- A check finds rows of evidence; ops.refresh_data_issues opens and closes issues by them.
-- ops.issue_sentence fills the sentence with the figures of the evidence.
create or replace view ops.data_issue_checks as
select
  *
from
  (
    values
      (
        'bill_gap',
        'bills',
        'meter',
        'warning',
        'Days between two bills of a meter that no bill covers; one or two of them are only information.',
        'No bill covers {from} to {last_day} ({extent}).'
      ),
      (
        'bill_overlap',
        'bills',
        'meter',
        'warning',
        'Days that more than one bill of a meter is for; the one day that a bill may share with the next does not count.',
        'More than one bill is for {from} to {last_day} ({days} days).'
      ),
      (
        'duplicate_bill',
        'bills',
        'document',
        'error',
        'A bill like an earlier one, which is neither superseded nor deleted: the same meters, days and cost, or the same account, provider and bill date.',
        'The bill is like bill {same_as}: the same {by}.'
      ),
      (
        'unusual_period',
        'bills',
        'document',
        'warning',
        'A bill for more than 65 days, or for less than 20, where the account''s bills usually are not.',
        'The bill is for {days} days; the account''s bills are usually for {usual_days}.'
      ),
      (
        'future_period',
        'bills',
        'document',
        'warning',
        'A bill whose period ends in the future.',
        'The bill''s period ends in the future, on {period_end}.'
      ),
      (
        'amount_mismatch',
        'bills',
        'document',
        'error',
        'Charges of the period that differ from the sum of the bill''s lines by more than 0.01.',
        'The bill charges {current_charges} {currency}, its lines sum to {lines}.'
      ),
      (
        'usage_mismatch',
        'bills',
        'document',
        'error',
        'Usage of the document that differs from the sum of its usage records.',
        'The bill states {on_document} {units|without a unit}, its usage records sum to {in_records|none}.'
      ),
      (
        'usage_spike',
        'bills',
        'document',
        'warning',
        'Use a day at least three times the highest of the four years before, whose highest tenth is left out; of meters with five bills before.',
        'The bill states {per_day} {units} a day; at most {usual_highest} was usual before.'
      ),
      (
        'hidden_estimate',
        'bills',
        'meter',
        'warning',
        'Three or more bills in a row with the very same use a day.',
        '{count} bills in a row state the very same {per_day} {units} a day, the first from {subject} on.'
      ),
      (
        'zero_usage_with_cost',
        'bills',
        'document',
        'info',
        'A bill that costs something though nothing was used.',
        'The bill costs {cost} {currency} though nothing was used.'
      ),
      (
        'negative_usage',
        'bills',
        'usage',
        'warning',
        'Negative usage that is neither exported nor excluded, on a bill without credits.',
        'Usage is negative: {usage} {units|without a unit}, on a bill without credits.'
      ),
      (
        'unit_changed',
        'bills',
        'usage',
        'warning',
        'Usage in another unit than on the meter''s bill before.',
        'Usage is in {units}; the meter''s bill before was in {before}.'
      ),
      (
        'currency_changed',
        'bills',
        'document',
        'error',
        'A bill in another currency than the account''s bill before.',
        'The bill is in {currency}; the account''s bill before was in {before}.'
      ),
      (
        'bad_dates',
        'bills',
        'usage',
        'warning',
        'Usage without dates, whose end is its start (so is an unknown end sent), or whose end is before its start.',
        'Usage from {start|no date} to {end|no date}: {problem}.'
      ),
      (
        'late_bill',
        'bills',
        'meter',
        'warning',
        'No bill for more than one and a half times the usual days between the meter''s bills; of meters with three.',
        'The next bill is {days_late} days late: the meter is billed until {billed_until}, usually every {usual_days} days.'
      ),
      (
        'orphan',
        'bills',
        'usage',
        'error',
        'Usage whose document or meter is not there.',
        'Usage names {missing}, which the warehouse does not have.'
      ),
      (
        'unknown_unit',
        'bills',
        'meter',
        'info',
        'Usage in a unit without a factor in ops.unit_factors: it cannot be added to others.',
        'Usage is in {units|no unit}, which ops.unit_factors has no factor for ({records} records).'
      ),
      (
        'unknown_commodity',
        'bills',
        'meter',
        'info',
        'A commodity that is none of those documented.',
        'The commodity {datasource_type} is none of those documented.'
      ),
      (
        'unusable_amount',
        'bills',
        'document',
        'error',
        'An amount of more digits than can be reckoned with: the record keeps it, views leave it out.',
        'The bill''s {field} has more digits than views compute with: they leave it out.'
      ),
      (
        'unreadable_value',
        'bills',
        'record',
        'error',
        'A value of a record that no column holds, as an amount of N/A or a date that does not exist: the column is NULL, raw has the record.',
        'The {field} of the {entity_type} cannot be read: {said}.'
      ),
      (
        'unknown_status',
        'connections',
        'connection',
        'info',
        'A status that is none of those documented.',
        'The status {status} is none of those documented.'
      ),
      (
        'unhealthy_connection',
        'connections',
        'connection',
        'error',
        'A connection that has collected nothing for more than 7 days.',
        'The connection is {status|without a status} since {since|an unknown day} and collects nothing. To do: {what_to_do}.'
      ),
      (
        'interval_coverage',
        'intervals',
        'meter',
        'warning',
        'Readings that cover less than 95 % of a month, between the meter''s first and last day.',
        'Readings cover {percent} % of {from} to {last_day}.'
      ),
      (
        'clock_change',
        'intervals',
        'meter',
        'warning',
        'A day of 23 or 25 hours with the readings of 24: their times may be local, or of another time zone.',
        '{day} has {readings} readings, where {expected} are expected: their times may not be of {time_zone}.'
      ),
      (
        'interval_bill_mismatch',
        'intervals',
        'usage',
        'warning',
        'Readings that cover all days of a bill, and differ from its usage by more than 2 %.',
        'The bill states {billed} {units}, the readings of its days sum to {readings}.'
      ),
      (
        'unusable_reading',
        'intervals',
        'meter',
        'error',
        'Readings without an amount, or of more digits than can be reckoned with: the table keeps them, views leave them out.',
        '{readings} readings without an amount, or of more digits than views compute with: they leave them out.'
      ),
      (
        'unreadable_reading',
        'intervals',
        'meter',
        'error',
        'Readings with a value that no column holds, as usage of N/A: the column is NULL.',
        '{readings} readings have a value that cannot be read, the first of {since}: its {field} is {said}.'
      ),
      (
        'several_readings',
        'intervals',
        'meter',
        'info',
        'Several readings of a meter with the same start, length and unit, as those of a meter with solar panels have. All are kept, and the views of analytics sum them.',
        'The meter has several readings of {times} times since {since}, for example {amounts} {units|without a unit}. The views of analytics sum them.'
      ),
      (
        'no_time_zone',
        'intervals',
        'company',
        'info',
        'Sites with readings for which no time zone is set: their days and hours are in UTC.',
        'No time zone is set for {sites} sites with readings: their days and hours are in UTC. Set it with metersync sites.'
      ),
      (
        'unknown_quality',
        'intervals',
        'meter',
        'info',
        'A quality of readings that is none of the standard list, nor known as one of them.',
        'The quality {quality} of {readings} readings is none of the standard list.'
      )
  ) as checks (check_name, run_with, entity_type, severity, what, sentence);
comment on view ops.data_issue_checks is 'The checks of the data.';
comment on column ops.data_issue_checks.run_with is 'bills, connections: after each run; intervals: after each backfill.';
comment on column ops.data_issue_checks.entity_type is 'document, usage, meter, connection or company; record: one of these or a site.';
comment on column ops.data_issue_checks.what is 'What it finds.';
comment on column ops.data_issue_checks.sentence is 'Template of the sentence for an issue: {days} is a figure of its evidence, and {units|no unit} gives the words for a missing figure.';
