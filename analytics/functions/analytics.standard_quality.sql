-- Maps a quality of readings to the standard list (IEEE 2030.5, ESPI).
create or replace function analytics.standard_quality (quality text) returns text
language sql immutable parallel safe as $$
  select case
    when quality is null then 'unknown'
    when upper(quality)
      in ('ACTUAL', 'VALID', 'VALIDATED', 'VERIFIED', 'MEASURED', 'NORMAL', 'GOOD', 'RAW', 'A')
      then 'valid'
    when upper(quality) in ('EDITED', 'MANUAL', 'MANUALLY_EDITED', 'ADJUSTED', 'CORRECTED')
      then 'edited'
    when upper(quality) like 'ESTIMATED%'
      or upper(quality) in ('ESTIMATE', 'INTERPOLATED', 'SUBSTITUTED', 'E')
      then 'estimated'
    when upper(quality) in ('QUESTIONABLE', 'SUSPECT', 'FAILED', 'INVALID', 'BAD')
      then 'questionable'
    when upper(quality) in ('DERIVED', 'CALCULATED', 'COMPUTED') then 'derived'
    when upper(quality) in ('FORECAST', 'PROJECTED', 'PREDICTED') then 'forecast'
    else 'unknown'
  end
$$;
comment on function analytics.standard_quality is
  'A quality in the terms of the standard list: valid, edited, estimated, questionable, derived, '
  'forecast, unknown.';
