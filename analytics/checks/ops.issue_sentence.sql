-- Writes a finding as a sentence, with the figures of its evidence.
create or replace function ops.issue_sentence(check_name text, subject text, evidence jsonb)
returns text
language sql stable parallel safe
begin atomic
  with
    figures as (
      select
        evidence ->> 'from' as first_day,
        (metersync.date_of(evidence ->> 'until') - 1)::text as last_day,
        evidence ->> 'days' as days,
        case
          when evidence ->> 'days' = '1' then ' day'
          else ' days'
        end as day_word,
        coalesce(evidence ->> 'units', 'no unit') as units,
        coalesce(evidence ->> 'currency', '') as currency
    )
  select
    case check_name
      when 'bill_gap'
        then format('No bill is for %s to %s (%s%s).', first_day, last_day, days, day_word)
      when 'bill_overlap' then format(
        'More than one bill is for %s to %s (%s%s).',
        first_day,
        last_day,
        days,
        day_word
      )
      when 'duplicate_bill' then format(
        'The bill is like bill %s: the same %s.',
        evidence ->> 'same_as',
        evidence ->> 'by'
      )
      when 'unusual_period' then format(
        'The bill is for %s%s; the account''s bills are usually for %s.',
        days,
        day_word,
        evidence ->> 'usual_days'
      )
      when 'future_period'
        then format('The bill''s period ends in the future, on %s.', evidence ->> 'period_end')
      when 'amount_mismatch' then format(
        'The bill charges %s %s, its lines come to %s.',
        evidence ->> 'current_charges',
        currency,
        evidence ->> 'lines'
      )
      when 'usage_mismatch' then format(
        'The bill states %s %s, its usage records sum to %s.',
        evidence ->> 'on_document',
        units,
        coalesce(evidence ->> 'in_records', 'none')
      )
      when 'usage_spike' then format(
        'The bill states %s %s a day; at most %s was usual before.',
        evidence ->> 'per_day',
        units,
        evidence ->> 'usual_highest'
      )
      when 'hidden_estimate' then format(
        '%s bills in a row state the very same %s %s a day, the first from %s on.',
        jsonb_array_length(metersync.elements(evidence -> 'bills')),
        evidence ->> 'per_day',
        units,
        subject
      )
      when 'zero_usage_with_cost'
        then format('The bill costs %s %s though nothing was used.', evidence ->> 'cost', currency)
      when 'negative_usage' then format(
        'Usage is negative: %s %s, on a bill without credits.',
        evidence ->> 'usage',
        units
      )
      when 'unit_changed' then format(
        'Usage is in %s; the meter''s bill before was in %s.',
        units,
        evidence ->> 'before'
      )
      when 'currency_changed' then format(
        'The bill is in %s; the account''s bill before was in %s.',
        currency,
        evidence ->> 'before'
      )
      when 'bad_dates' then format(
        'Usage from %s to %s: %s.',
        coalesce(evidence ->> 'start', 'no date'),
        coalesce(evidence ->> 'end', 'no date'),
        case evidence ->> 'quality'
          when 'inverted' then 'the end is before the start'
          when 'end_missing' then 'the end is the start, as an unknown end is sent'
          else 'a date is missing'
        end
      )
      when 'late_bill' then format(
        'The next bill is %s late: the meter is billed until %s, usually every %s days.',
        case evidence ->> 'days_late'
          when '1' then '1 day'
          else (evidence ->> 'days_late') || ' days'
        end,
        evidence ->> 'billed_until',
        evidence ->> 'usual_days'
      )
      when 'orphan' then format(
        'Usage names %s, which the warehouse does not have.',
        concat_ws(
          ' and ',
          'document ' || (evidence ->> 'document'),
          'meter ' || (evidence ->> 'meter')
        )
      )
      when 'unknown_unit' then format(
        'Usage is in %s, which ops.unit_factors has no factor for (%s).',
        units,
        case evidence ->> 'records'
          when '1' then '1 record'
          else (evidence ->> 'records') || ' records'
        end
      )
      when 'unknown_commodity'
        then format('The commodity %s is none of those documented.', evidence ->> 'datasource_type')
      when 'unusable_amount' then format(
        'The bill''s %s has more digits than can be reckoned with%s; views leave it out.',
        evidence ->> 'field',
        ' (in ' || nullif(evidence ->> 'units', '') || ')'
      )
      when 'unusable_reading' then format(
        '%s of more digits than can be reckoned with: views leave them out.',
        case evidence ->> 'readings'
          when '1' then '1 reading'
          else (evidence ->> 'readings') || ' readings'
        end
      )
      when 'unknown_status'
        then format('The status %s is none of those documented.', evidence ->> 'status')
      when 'unhealthy_connection' then format(
        'The connection is %s%s and collects nothing. To do: %s.',
        coalesce(evidence ->> 'status', 'without a status'),
        ' since ' || left(evidence ->> 'since', 10),
        evidence ->> 'what_to_do'
      )
      when 'interval_coverage' then format(
        'Readings cover %s %% of %s to %s.',
        round(100 * metersync.number_of(evidence ->> 'coverage'), 1),
        first_day,
        last_day
      )
      when 'clock_change' then format(
        '%s has %s readings, where %s are expected: their times may not be of %s.',
        left(subject, 10),
        evidence ->> 'readings',
        evidence ->> 'expected',
        evidence ->> 'time_zone'
      )
      when 'interval_bill_mismatch' then format(
        'The bill states %s %s, the readings of its days sum to %s.',
        evidence ->> 'billed',
        units,
        evidence ->> 'readings'
      )
      when 'unknown_quality' then format(
        'The quality %s of %s is none of the standard list.',
        evidence ->> 'quality',
        case evidence ->> 'readings'
          when '1' then '1 reading'
          else (evidence ->> 'readings') || ' readings'
        end
      )
      else check_name || ': ' || evidence::text
    end
  from figures;
end;

comment on function ops.issue_sentence is 'A finding as a sentence.';
