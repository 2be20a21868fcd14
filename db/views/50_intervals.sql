-- Qualities of readings in the terms of the standard list (IEEE 2030.5, ESPI).
create or replace function analytics.standard_quality(quality text) returns text language sql immutable parallel safe as $$
  select case
    when quality is null then 'unknown'
    when upper(quality) in ('ACTUAL', 'VALID', 'VALIDATED', 'VERIFIED', 'MEASURED', 'NORMAL', 'GOOD', 'RAW', 'A') then 'valid'
    when upper(quality) in ('EDITED', 'MANUAL', 'MANUALLY_EDITED', 'ADJUSTED', 'CORRECTED') then 'edited'
    when upper(quality) like 'ESTIMATED%' or upper(quality) in ('ESTIMATE', 'INTERPOLATED', 'SUBSTITUTED', 'E') then 'estimated'
    when upper(quality) in ('QUESTIONABLE', 'SUSPECT', 'FAILED', 'INVALID', 'BAD') then 'questionable'
    when upper(quality) in ('DERIVED', 'CALCULATED', 'COMPUTED') then 'derived'
    when upper(quality) in ('FORECAST', 'PROJECTED', 'PREDICTED') then 'forecast'
    else 'unknown'
  end
$$;
comment on function analytics.standard_quality is 'A quality in the terms of the standard list: valid, edited, estimated, questionable, derived, forecast, unknown.';

create or replace view analytics.interval_readings as
select m.company_id, m.site_id, i.meter_id, m.datasource_type, i.start_at,
  i.start_at + i.granularity_seconds * interval '1 second' as end_at, i.granularity_seconds, metersync.amount(i.usage) as usage, i.usage_units,
  metersync.amount(i.usage) * coalesce(own.factor, common.factor, 1) as standard_usage,
  coalesce(own.standard_units, common.standard_units, i.usage_units) as standard_units,
  coalesce(own.dimension, common.dimension, 'unknown') as dimension,
  case coalesce(own.dimension, common.dimension)
    when 'energy' then round(metersync.amount(i.usage) * coalesce(own.factor, common.factor) * 3600 / i.granularity_seconds, 6)
    when 'power' then metersync.amount(i.usage) * coalesce(own.factor, common.factor)
  end as kw,
  i.quality, analytics.standard_quality(i.quality) as standard_quality,
  (i.start_at at time zone coalesce(z.time_zone, 'UTC')) as local_start, coalesce(z.time_zone, 'UTC') as time_zone,
  coalesce(z.time_zone_source, 'default') as time_zone_source, i.updated, i.synced_at,
  m.datasource_type as commodity, i.usage_units as units
from utility.intervals i
  left join utility.meters m on m.id = i.meter_id
  left join analytics.site_time_zones z on z.site_id = m.site_id
  left join ops.unit_factors own on own.units = i.usage_units and own.datasource_type = m.datasource_type
  left join ops.unit_factors common on common.units = i.usage_units and common.datasource_type = '';
comment on view analytics.interval_readings is 'One row for each interval reading. A condition on start_at reads the months that it is for and no others.';
select metersync.comment_columns('analytics.interval_readings', '{
  "start_at": "Start.",
  "end_at": "End, not included.",
  "granularity_seconds": "Length in seconds.",
  "usage": "Amount, in usage_units; NULL for one of more than a hundred digits, which no unit is turned into.",
  "usage_units": "Unit, as the service names it.",
  "standard_usage": "The amount in standard_units.",
  "standard_units": "Standard unit of the dimension (ops.unit_factors).",
  "dimension": "energy, power, volume, …; unknown where no factor is known.",
  "kw": "Mean power over the reading, of energy and of power; NULL of others.",
  "quality": "Quality, as the service names it.",
  "standard_quality": "Quality in the terms of the standard list.",
  "local_start": "Start in the site''s time zone.",
  "synced_at": "When the read began that brought it.",
  "updated": "When the service last changed it, where it says."
}');

-- Readings by the local day: split at midnight where one crosses it, by time; each resolution by itself; what is covered
-- is counted once where readings of a resolution overlap. Of most readings neither is true: those are counted in whole
-- seconds, and what depends on their unit is reckoned once a day. A day that a zone left out, as Samoa did in 2011, has no row.
create or replace view analytics.interval_days_by_resolution as
select d.company_id, d.site_id, d.meter_id, d.datasource_type, d.local_date, d.usage_units, d.granularity_seconds, d.time_zone,
  d.time_zone_source, d.readings, d.usage, d.whole_seconds + d.odd_seconds as covered_seconds, d.estimated_readings,
  d.doubtful_readings, case coalesce(own.dimension, common.dimension)
    when 'energy' then array[round(d.highest[1] * coalesce(own.factor, common.factor) * 3600 / d.granularity_seconds, 6), d.highest[2]]
    when 'power' then array[d.highest[1] * coalesce(own.factor, common.factor), d.highest[2]]
  end as highest, d.datasource_type as commodity, d.usage_units as units
from (
  select company_id, site_id, meter_id, datasource_type, local_date, usage_units, granularity_seconds, time_zone,
    time_zone_source, count(*) filter (where part = 0)::integer as readings, sum(usage_here) as usage,
    coalesce(sum(granularity_seconds) filter (where odd_covered is null), 0) as whole_seconds, coalesce(sum(odd_covered), 0) as odd_seconds,
    count(*) filter (where part = 0 and standard_quality = 'estimated')::integer as estimated_readings,
    count(*) filter (where part = 0 and standard_quality in ('questionable', 'forecast', 'unknown'))::integer as doubtful_readings,
    max(array[usage, -extract(epoch from start_at)]) filter (where usage is not null) as highest
  from (
    select r.company_id, r.site_id, r.meter_id, r.datasource_type, r.local_date + part as local_date, r.usage_units,
      r.granularity_seconds, r.time_zone, r.time_zone_source, r.standard_quality, r.usage, r.start_at, part,
      case when r.parts = 0 then r.usage
        when s.through > s.before then metersync.share(r.usage, s.before, s.through, r.granularity_seconds, greatest(scale(r.usage), 6))
      end as usage_here,
      case when r.parts = 0 and r.next_start >= r.end_at then null
        when r.parts = 0 then extract(epoch from r.next_start - r.start_at)
        else greatest(0, extract(epoch from least(r.end_at, r.next_start, s.day_end) - greatest(r.start_at, s.day_start)))
      end as odd_covered
    from (
      select *, unnest(case when parts = 0 then array[0] else array(select generate_series(0, parts)) end) as part
      from (
        select *, case when granularity_seconds > 3600 or local_start::time >= time '21:00'
            then ((end_at - interval '1 microsecond') at time zone time_zone)::date - local_date else 0 end as parts
        from (
          -- Where clocks fall back some minutes after midnight, as those of St. John's did at 00:01 until 2011, these minutes
          -- are the day before's, which goes on after them.
          select *, local_start::date - case when local_start::time < time '01:00'
              then (start_at < metersync.day_start(local_start::date, time_zone))::integer else 0 end as local_date
          from (
          select company_id, site_id, meter_id, datasource_type, usage_units, granularity_seconds, time_zone, time_zone_source,
            standard_quality, start_at, end_at, usage, local_start,
            coalesce(lead(start_at) over (partition by company_id, meter_id, usage_units, granularity_seconds order by start_at),
              'infinity') as next_start
          from analytics.interval_readings
          ) followed
        ) dated
      ) placed
    ) r
      left join lateral (
        select day_start, day_end,
          greatest(0, extract(epoch from day_start - r.start_at))::integer as before,
          least(r.granularity_seconds, extract(epoch from day_end - r.start_at))::integer as through
        from (
          select metersync.day_start(r.local_date + part, r.time_zone) as day_start,
            metersync.day_start(r.local_date + part + 1, r.time_zone) as day_end
        ) day
        where r.parts > 0
        offset 0
      ) s on true
    where r.parts = 0 or s.day_end > s.day_start
  ) split
  group by company_id, meter_id, usage_units, granularity_seconds, local_date, site_id, datasource_type, time_zone, time_zone_source
) d
  left join ops.unit_factors own on own.units = d.usage_units and own.datasource_type = d.datasource_type
  left join ops.unit_factors common on common.units = d.usage_units and common.datasource_type = '';
comment on view analytics.interval_days_by_resolution is 'One row for each meter, local day, unit and length of readings: what interval_daily chooses from. A reading that crosses midnight is split by time.';

-- Resolutions of a day are never added: the finest that covers the day counts, else the one that covers most of it.
create or replace view analytics.interval_daily as
select company_id, site_id, meter_id, datasource_type, local_date, usage_units, granularity_seconds, usage,
  usage * factor as standard_usage, standard_units, dimension, highest[1] as max_kw, to_timestamp(-highest[2]::float8) as max_kw_at,
  readings, round(day_seconds / granularity_seconds, 2) as expected_readings, covered_seconds::integer as covered_seconds,
  day_seconds::integer as day_seconds, round(covered_seconds / day_seconds, 4) as coverage, estimated_readings,
  doubtful_readings, resolutions, time_zone, time_zone_source, datasource_type as commodity, usage_units as units
from (
  select d.*, day.day_seconds, coalesce(own.factor, common.factor, 1) as factor,
    coalesce(own.standard_units, common.standard_units, d.usage_units) as standard_units,
    coalesce(own.dimension, common.dimension, 'unknown') as dimension,
    row_number() over (
      partition by d.company_id, d.meter_id, d.usage_units, d.local_date
      order by d.covered_seconds >= day.day_seconds desc,
        case when d.covered_seconds >= day.day_seconds then d.granularity_seconds end, d.covered_seconds desc,
        d.granularity_seconds) as choice,
    array_agg(d.granularity_seconds) over (partition by d.company_id, d.meter_id, d.usage_units, d.local_date) as resolutions
  from analytics.interval_days_by_resolution d
    cross join lateral (
      select extract(epoch from metersync.day_start(d.local_date + 1, d.time_zone)
        - metersync.day_start(d.local_date, d.time_zone)) as day_seconds
      offset 0) day
    left join ops.unit_factors own on own.units = d.usage_units and own.datasource_type = d.datasource_type
    left join ops.unit_factors common on common.units = d.usage_units and common.datasource_type = ''
) chosen
where choice = 1;
comment on view analytics.interval_daily is 'One row for each meter, local day and unit with readings, from the one resolution that tells the day best.';
select metersync.comment_columns('analytics.interval_daily', '{
  "local_date": "Day in the site''s time zone.",
  "usage_units": "Unit, as the service names it.",
  "granularity_seconds": "Length of the readings that count: the shortest that covers the day, else the one that covers most of it.",
  "usage": "Sum of the readings, in usage_units; for units of power a sum of means: see max_kw.",
  "standard_usage": "The same in standard_units.",
  "standard_units": "Standard unit of the dimension (ops.unit_factors).",
  "dimension": "energy, power, volume, …; unknown where no factor is known.",
  "max_kw": "Highest mean power of a reading.",
  "max_kw_at": "Start of the first reading that had it.",
  "readings": "Readings that start on the day.",
  "expected_readings": "Readings that fill the day: of 15 minutes 96, and 92 or 100 when the clocks change.",
  "covered_seconds": "Seconds of the day that readings cover; overlapping ones once.",
  "day_seconds": "Seconds of the day, by the site''s time zone.",
  "coverage": "covered_seconds / day_seconds.",
  "estimated_readings": "Readings that are estimated.",
  "doubtful_readings": "Readings that are questionable, forecast or of unknown quality.",
  "resolutions": "Lengths of all readings of the day."
}');
select metersync.comment_columns('analytics.interval_days_by_resolution', '{
  "local_date": "Day in the site''s time zone.",
  "usage_units": "Unit, as the service names it.",
  "granularity_seconds": "Length of the readings.",
  "readings": "Readings that start on the day.",
  "usage": "Sum of what falls on the day.",
  "covered_seconds": "Seconds of the day that readings cover; overlapping ones once.",
  "estimated_readings": "Readings that are estimated.",
  "doubtful_readings": "Readings that are questionable, forecast or of unknown quality.",
  "highest": "Highest kW, and minus the second since 1970 when the first reading that had it starts."
}');

create or replace view analytics.interval_gaps as
select company_id, site_id, meter_id, usage_units, held_until as gap_start, next_start as gap_end,
  extract(epoch from next_start - held_until)::bigint as seconds,
  round(extract(epoch from next_start - held_until) / granularity_seconds, 2) as missing_readings, granularity_seconds,
  held_until at time zone time_zone as local_start, time_zone, time_zone_source
from (
  select company_id, site_id, meter_id, usage_units, granularity_seconds, time_zone, time_zone_source,
    max(end_at) over (meter rows between unbounded preceding and current row) as held_until,
    lead(start_at) over meter as next_start
  from analytics.interval_readings
  window meter as (partition by company_id, meter_id, usage_units order by start_at)
) held
where next_start > held_until;
comment on view analytics.interval_gaps is 'One row for each time between a meter''s first and last reading of a unit that no reading covers, of whatever length.';
select metersync.comment_columns('analytics.interval_gaps', '{
  "usage_units": "Unit of the readings.",
  "gap_start": "Where it begins.",
  "gap_end": "Where readings go on.",
  "seconds": "Its length.",
  "missing_readings": "Readings that would fill it, of the length of the one before.",
  "granularity_seconds": "Length of the reading before.",
  "local_start": "gap_start in the site''s time zone."
}');

create or replace view analytics.interval_overlaps as
select company_id, site_id, meter_id, usage_units, min(start_at) as overlap_start, max(overlap_end) as overlap_end,
  extract(epoch from max(overlap_end) - min(start_at))::bigint as seconds, count(*)::integer as readings,
  array_agg(distinct granularity_seconds) || array_agg(distinct before_seconds) as granularities,
  bool_or(granularity_seconds <> before_seconds) as mixes_resolutions, time_zone, time_zone_source
from (
  select *, count(*) filter (where start_at > ends_before) over (
    partition by company_id, meter_id, usage_units order by start_at, granularity_seconds) as island
  from (
    select company_id, site_id, meter_id, usage_units, granularity_seconds, before_seconds, start_at,
      least(end_at, held_until) as overlap_end, time_zone, time_zone_source,
      max(least(end_at, held_until)) over (partition by company_id, meter_id, usage_units
        order by start_at, granularity_seconds rows between unbounded preceding and 1 preceding) as ends_before
    from (
      select *, max(end_at) over (meter rows between unbounded preceding and 1 preceding) as held_until,
        lag(granularity_seconds) over meter as before_seconds
      from analytics.interval_readings
      window meter as (partition by company_id, meter_id, usage_units order by start_at, granularity_seconds)
    ) held
    where start_at < held_until
  ) overlapping
) islands
group by company_id, site_id, meter_id, usage_units, time_zone, time_zone_source, island;
comment on view analytics.interval_overlaps is 'One row for each time that more than one reading of a meter and unit covers: other lengths side by side, or readings that were shifted. interval_daily counts one of them.';
select metersync.comment_columns('analytics.interval_overlaps', '{
  "usage_units": "Unit of the readings.",
  "overlap_start": "Where it begins.",
  "overlap_end": "Where it ends.",
  "seconds": "Its length.",
  "readings": "Readings that begin in time that another covers.",
  "granularities": "Lengths of the readings.",
  "mixes_resolutions": "Whether they are of several lengths."
}');

create or replace view analytics.interval_coverage as
select company_id, site_id, meter_id, datasource_type, month, usage_units, standard_units, dimension,
  sum(usage) as usage, sum(standard_usage) as standard_usage, max(max_kw) as max_kw, sum(readings)::integer as readings,
  sum(covered_seconds) as covered_seconds, month_seconds,
  round(sum(covered_seconds)::numeric / month_seconds, 4) as coverage, count(*)::integer as days,
  (count(*) filter (where covered_seconds = day_seconds))::integer as days_covered,
  sum(estimated_readings)::integer as estimated_readings, time_zone, time_zone_source,
  datasource_type as commodity, usage_units as units
from (
  select d.*, date_trunc('month', d.local_date::timestamp)::date as month,
    extract(epoch from metersync.day_start((date_trunc('month', d.local_date::timestamp) + interval '1 month')::date, d.time_zone)
      - metersync.day_start(date_trunc('month', d.local_date::timestamp)::date, d.time_zone))::bigint as month_seconds
  from analytics.interval_daily d
) dated
group by company_id, site_id, meter_id, datasource_type, month, month_seconds, usage_units, standard_units, dimension,
  time_zone, time_zone_source;
comment on view analytics.interval_coverage is 'One row for each meter, local month and unit with readings: how much of it they cover, and what they add up to.';
select metersync.comment_columns('analytics.interval_coverage', '{
  "month": "First day of the month.",
  "usage_units": "Unit, as the service names it.",
  "standard_units": "Standard unit of the dimension.",
  "dimension": "energy, power, volume, …; unknown where no factor is known.",
  "usage": "Sum of the readings, in usage_units.",
  "standard_usage": "The same in standard_units.",
  "max_kw": "Highest mean power of a reading.",
  "readings": "Readings.",
  "covered_seconds": "Seconds of the month that readings cover.",
  "month_seconds": "Seconds of the month, by the site''s time zone.",
  "coverage": "covered_seconds / month_seconds.",
  "days": "Days with a reading.",
  "days_covered": "Days that readings cover whole.",
  "estimated_readings": "Readings that are estimated."
}');

create or replace view analytics.load_profile as
select r.company_id, r.site_id, r.meter_id, r.weekday, r.hour, r.readings, round(r.usage * r.kw_of_one / r.with_usage, 6) as average_kw,
  round(r.highest * r.kw_of_one, 6) as max_kw, round(r.lowest * r.kw_of_one, 6) as min_kw, r.time_zone, r.time_zone_source
from (
  select g.*, min(granularity_seconds) over (partition by company_id, meter_id, usage_units) as finest,
    min(case dimension when 'energy' then usage_units end) over (partition by company_id, meter_id) as energy_units
  from (
    select h.*, coalesce(own.dimension, common.dimension) as dimension, case coalesce(own.dimension, common.dimension)
        when 'energy' then coalesce(own.factor, common.factor) * 3600 / h.granularity_seconds
        when 'power' then coalesce(own.factor, common.factor)
      end as kw_of_one
    from (
      select company_id, site_id, meter_id, datasource_type, usage_units, granularity_seconds, time_zone, time_zone_source,
        extract(isodow from local_hour)::integer as weekday, extract(hour from local_hour)::integer as hour,
        sum(readings)::integer as readings, sum(usage) as usage, nullif(sum(with_usage), 0) as with_usage, max(highest) as highest,
        min(lowest) as lowest
      from (
        select company_id, site_id, meter_id, datasource_type, usage_units, granularity_seconds, time_zone, time_zone_source,
          date_trunc('hour', local_start) as local_hour, count(*) as readings, sum(usage) as usage, count(usage) as with_usage,
          max(usage) as highest, min(usage) as lowest
        from analytics.interval_readings
        group by company_id, site_id, meter_id, datasource_type, usage_units, granularity_seconds, time_zone, time_zone_source, local_hour
      ) hours
      group by company_id, site_id, meter_id, datasource_type, usage_units, granularity_seconds, time_zone, time_zone_source, weekday, hour
    ) h
      left join ops.unit_factors own on own.units = h.usage_units and own.datasource_type = h.datasource_type
      left join ops.unit_factors common on common.units = h.usage_units and common.datasource_type = ''
  ) g
  where dimension in ('energy', 'power')
) r
where r.granularity_seconds = r.finest and r.usage_units = coalesce(r.energy_units, r.usage_units);
comment on view analytics.load_profile is 'Mean and highest power of each meter by hour and weekday of its site, from its shortest readings of energy, else of power.';
select metersync.comment_columns('analytics.load_profile', '{
  "weekday": "1 Monday to 7 Sunday.",
  "hour": "Hour of the day, 0 to 23.",
  "readings": "Readings that it is made of.",
  "average_kw": "Mean power.",
  "max_kw": "Highest mean power of a reading.",
  "min_kw": "Lowest mean power of a reading."
}');

create or replace view analytics.monthly_best_usage as
select company_id, coalesce(b.site_id, i.site_id) as site_id, meter_id, coalesce(b.datasource_type, i.datasource_type) as datasource_type,
  month, units, case when i.coverage >= 0.95 then i.usage else b.usage end as usage,
  case when i.coverage >= 0.95 then 'interval' when b.usage is not null then 'bill_proration' end as method,
  b.usage as billed_usage, b.coverage as billed_coverage, b.is_complete, b.bills, b.bill_ids, i.usage as interval_usage,
  i.coverage as interval_coverage, coalesce(b.datasource_type, i.datasource_type) as commodity
from analytics.monthly_usage b
  full join (
    select company_id, min(site_id::text)::uuid as site_id, meter_id, min(datasource_type) as datasource_type, month,
      standard_units as units, sum(standard_usage) as usage, max(coverage) as coverage
    from analytics.interval_coverage
    where dimension not in ('power', 'apparent power', 'reactive power')
    group by company_id, meter_id, month, standard_units
    having count(*) = 1
  ) i using (company_id, meter_id, month, units);
comment on view analytics.monthly_best_usage is 'Usage of each meter in each month by readings where they cover at least 95 % of it, else by bills.';
select metersync.comment_columns('analytics.monthly_best_usage', '{
  "month": "First day of the month; NULL for usage without dates.",
  "units": "Standard unit of the amounts.",
  "usage": "interval_usage or billed_usage, as method says.",
  "method": "interval: readings cover at least 95 % of the month; bill_proration: bills spread over their days, or without any; NULL: neither tells it.",
  "billed_usage": "monthly_usage.usage.",
  "billed_coverage": "Part of the month that bills are for.",
  "is_complete": "Whether each day is billed, and once.",
  "bills": "Bills that have days in the month.",
  "bill_ids": "Their documents.",
  "interval_usage": "What readings add up to.",
  "interval_coverage": "Part of the month that readings cover."
}');

create or replace view analytics.bill_interval_comparison as
select u.company_id, u.site_id, u.meter_id, u.bill_id, u.usage_id, u.period, u.standard_units as units,
  u.standard_usage as billed_usage, i.usage as interval_usage, i.coverage as interval_coverage,
  i.usage - u.standard_usage as difference,
  round((i.usage - u.standard_usage) / nullif(abs(u.standard_usage), 0), 4) as relative_difference, u.is_estimated,
  i.time_zone, i.time_zone_source
from (
  select company_id, meter_id, usage_id, sum(standard_usage) as usage, min(time_zone) as time_zone,
    min(time_zone_source) as time_zone_source,
    round(sum(covered_seconds) / extract(epoch from metersync.day_start(max(upper(period)), min(time_zone))
      - metersync.day_start(min(lower(period)), min(time_zone))), 4) as coverage
  from (
    select u.company_id, u.meter_id, u.usage_id, u.period, d.standard_usage, d.covered_seconds, d.time_zone, d.time_zone_source,
      d.usage_units, min(d.usage_units) over (partition by u.company_id, u.meter_id, u.usage_id) as one_of
    from analytics.usage u
      join analytics.interval_daily d on d.company_id = u.company_id and d.meter_id = u.meter_id
        and d.standard_units = u.standard_units and d.local_date >= lower(u.period) and d.local_date < upper(u.period)
  ) days
  where usage_units = one_of
  group by company_id, meter_id, usage_id
) i
  join analytics.usage u on u.company_id = i.company_id and u.meter_id = i.meter_id and u.usage_id = i.usage_id;
comment on view analytics.bill_interval_comparison is 'Each usage record of a bill beside the readings of its meter over the same local days. Only where interval_coverage is 1 can they be equal.';
select metersync.comment_columns('analytics.bill_interval_comparison', '{
  "usage_id": "The usage record.",
  "period": "Days that it is for, half-open.",
  "units": "Standard unit of the amounts.",
  "billed_usage": "What was billed.",
  "interval_usage": "What readings of these days add up to.",
  "interval_coverage": "Part of the period that readings cover.",
  "difference": "interval_usage - billed_usage.",
  "relative_difference": "difference / billed_usage.",
  "is_estimated": "Whether the bill is estimated."
}');
