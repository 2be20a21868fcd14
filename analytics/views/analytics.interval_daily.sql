-- The shortest resolution that covers the day counts. If no resolution covers it, each moment
-- counts from the shortest reading that covers this moment, so that resolutions which follow one
-- another are added, and resolutions of the same time are not. Each resolution is computed
-- separately. Only days with several resolutions of which none covers the day are read again. A
-- reading that crosses midnight is split there, in proportion to time. Time that several readings
-- of one resolution cover is counted once. A reading without an amount covers nothing, even where
-- others do. Most readings neither cross midnight nor overlap: their seconds are summed as
-- integers. Units are looked up once for each day instead of each reading. Readings with the same
-- start count as one reading with their sum. Few meters have such readings, so only days with
-- several readings of one start are read again; grouping all readings by start would make all days
-- a third more expensive. A day that a time zone skipped, as Samoa did in 2011, has no row.
create or replace view analytics.interval_daily as
with followed_readings as (
  select
    company_id, site_id, meter_id, datasource_type, usage_units, granularity_seconds, time_zone,
    time_zone_source, standard_quality, start_at, end_at, usage, local_start, ordinal,
    coalesce(
      lead(start_at) over (
        partition by company_id, meter_id, usage_units, granularity_seconds, usage is null
        order by start_at
      ),
      'infinity'
    ) as next_start
  from analytics.interval_readings
),
-- If clocks fall back some minutes after midnight, these minutes belong to the day before. The
-- clocks of St. John's did so at 00:01 until 2011: the day before continues after them.
dated_readings as (
  select
    *,
    local_start::date - (
      local_start::time < time '01:00'
      and start_at < metersync.day_start(local_start::date, time_zone)
    )::integer as local_date,
    ((end_at - interval '1 microsecond') at time zone time_zone)::date as last_date
  from followed_readings
),
-- How many midnights a reading crosses. Only long readings, and readings late in the day, cross
-- midnight.
placed_readings as (
  select
    *,
    case
      when granularity_seconds > 3600 or local_start::time >= time '21:00'
        then last_date - local_date
      else 0
    end as parts
  from dated_readings
), reading_parts as (
  select
    *,
    unnest(
      case when parts = 0 then array[0] else array(select generate_series(0, parts)) end
    ) as part
  from placed_readings
),
-- The day of a part, and the number of seconds from the start of the reading to the beginning and
-- to the end of this day. They are computed once, and only for readings that cross midnight.
day_parts as (
  select r.*, s.day_start, s.day_end, s.before, s.through
  from reading_parts r
    left join lateral (
      select
        day_start, day_end,
        greatest(0, extract(epoch from day_start - r.start_at))::integer as before,
        least(r.granularity_seconds, extract(epoch from day_end - r.start_at))::integer as through
      from (
        select
          metersync.day_start(r.local_date + r.part, r.time_zone) as day_start,
          metersync.day_start(r.local_date + r.part + 1, r.time_zone) as day_end
      ) day
      where r.parts > 0
      offset 0
    ) s on true
  where r.parts = 0
    or s.day_end > s.day_start
),
-- odd_covered is NULL if the reading covers all of its seconds.
split_readings as (
  select
    company_id, site_id, meter_id, datasource_type,
    local_date + part as local_date,
    usage_units, granularity_seconds, time_zone, time_zone_source, standard_quality, usage, ordinal,
    start_at, part,
    case
      when parts = 0 then usage
      when through > before
        then metersync.share(usage, before, through, granularity_seconds, greatest(scale(usage), 6))
    end as usage_here,
    case
      when usage is null then 0
      when parts = 0 and next_start >= end_at then null
      when parts = 0 then extract(epoch from next_start - start_at)
      else greatest(
        0,
        extract(epoch from least(end_at, next_start, day_end) - greatest(start_at, day_start))
      )
    end as odd_covered
  from day_parts
), days as (
  select
    company_id, site_id, meter_id, datasource_type, local_date, usage_units, granularity_seconds,
    time_zone, time_zone_source,
    count(*) filter (where part = 0)::integer as readings,
    sum(usage_here) as usage,
    coalesce(sum(granularity_seconds) filter (where odd_covered is null), 0) as whole_seconds,
    coalesce(sum(odd_covered), 0) as odd_seconds,
    count(*) filter (
      where part = 0
        and standard_quality = 'estimated'
    )::integer as estimated_readings,
    count(*) filter (
      where part = 0
        and standard_quality in ('questionable', 'forecast', 'unknown')
    )::integer as doubtful_readings,
    max(array[usage, -extract(epoch from start_at)]) filter (where usage is not null) as highest,
    max(ordinal) > 0 as has_sums
  from split_readings
  group by
    company_id, meter_id, usage_units, granularity_seconds, local_date, site_id, datasource_type,
    time_zone, time_zone_source
), summed_days as (
  select
    d.company_id, d.site_id, d.meter_id, d.datasource_type, d.local_date, d.usage_units,
    d.granularity_seconds, d.time_zone, d.time_zone_source, d.usage, d.whole_seconds, d.odd_seconds,
    coalesce(s.readings, d.readings) as readings,
    coalesce(s.estimated_readings, d.estimated_readings) as estimated_readings,
    coalesce(s.doubtful_readings, d.doubtful_readings) as doubtful_readings,
    coalesce(s.highest, d.highest) as highest
  from days d
    left join lateral (
      select
        count(*) filter (where starts_here)::integer as readings,
        count(*) filter (where starts_here and has_estimated)::integer as estimated_readings,
        count(*) filter (where starts_here and has_doubtful)::integer as doubtful_readings,
        max(array[usage, -extract(epoch from start_at)]) filter (where usage is not null) as highest
      from (
        select
          i.start_at,
          i.start_at >= day_start as starts_here,
          sum(metersync.amount(i.usage)) as usage,
          bool_or(analytics.standard_quality(i.quality) = 'estimated') as has_estimated,
          bool_or(
            analytics.standard_quality(i.quality) in ('questionable', 'forecast', 'unknown')
          ) as has_doubtful
        from metersync.day_start(d.local_date, d.time_zone) as day_start
          cross join metersync.day_start(d.local_date + 1, d.time_zone) as day_end
          join utility.intervals i on i.meter_id = d.meter_id
            and i.granularity_seconds = d.granularity_seconds
            and i.usage_units = d.usage_units
            and i.start_at > day_start - d.granularity_seconds * interval '1 second'
            and i.start_at < day_end
        group by i.start_at, day_start
      ) starts
      where d.has_sums
      offset 0
    ) s on d.has_sums
), measured_days as (
  select
    d.*, c.covered_seconds, c.day_seconds,
    c.covered_seconds >= c.day_seconds as is_covered
  from summed_days d
    cross join lateral (
      -- Computed once for each day.
      select
        d.whole_seconds + d.odd_seconds as covered_seconds,
        extract(
          epoch
          from metersync.day_start(d.local_date + 1, d.time_zone)
            - metersync.day_start(d.local_date, d.time_zone)
        ) as day_seconds
      offset 0
    ) c
), days_with_unit as ({{in_standard_units rows="measured_days" commodity="datasource_type"}}),
ranked as (
  select
    *,
    row_number() over (
      partition by company_id, meter_id, metersync.unit_key(units), local_date
      order by
        is_covered desc,
        case when is_covered then granularity_seconds end,
        covered_seconds desc, granularity_seconds
    ) as choice,
    array_agg(granularity_seconds) over of_unit as resolutions,
    array_agg(usage_units) over of_unit as spellings
  from days_with_unit
  window of_unit as (partition by company_id, meter_id, metersync.unit_key(units), local_date)
), chosen as (
  select
    *,
    -- Two rows of the same resolution spell the unit in two ways, and are added.
    cardinality(resolutions) > 1 and (
      not is_covered or cardinality(array_positions(resolutions, granularity_seconds)) > 1
    ) as is_mixed
  from ranked
  -- Not "= 1": the planner would expect one day in two hundred, and compare each of these with
  -- all rows that days are joined to.
  where choice < 2
), mixed as (select c.*, m.* from chosen c left join lateral ({{mixed_day}}) m on c.is_mixed)
select
  r.company_id, r.site_id, meter_id, datasource_type, local_date, usage_units,
  coalesce(mixed_granularity, granularity_seconds) as granularity_seconds,
  coalesce(mixed_usage, usage) as usage,
  metersync.in_standard_units(coalesce(mixed_usage, usage), factor) as standard_usage,
  standard_units, dimension,
  case dimension
    when 'energy' then coalesce(
      round(mixed_highest[1] * factor, 6),
      round(highest[1] * factor * 3600 / granularity_seconds, 6)
    )
    when 'power' then metersync.in_standard_units((coalesce(mixed_highest, highest))[1], factor)
  end as max_kw,
  case
    when dimension in ('energy', 'power')
      then to_timestamp(-((coalesce(mixed_highest, highest))[2])::float8)
  end as max_kw_at,
  coalesce(mixed_readings, readings) as readings,
  coalesce(mixed_expected, round(day_seconds / granularity_seconds, 2)) as expected_readings,
  coalesce(mixed_covered, covered_seconds)::integer as covered_seconds,
  day_seconds::integer as day_seconds,
  round(coalesce(mixed_covered, covered_seconds) / day_seconds, 4) as coverage,
  coalesce(mixed_estimated, estimated_readings) as estimated_readings,
  coalesce(mixed_doubtful, doubtful_readings) as doubtful_readings,
  resolutions, time_zone, time_zone_source,
  datasource_type as commodity,
  units,
  c.name as company,
  s.name as site
from mixed r
  left join utility.companies c on c.id = r.company_id
  left join utility.sites s on s.id = r.site_id
order by hashtext(meter_id);
comment on view analytics.interval_daily is
  'One row for each meter, local day and unit with readings, each time counted once.';
comment on column analytics.interval_daily.granularity_seconds is
  'Length of the readings that count for most of the day.';
comment on column analytics.interval_daily.usage is
  'Sum of the readings; for units of power of their means.';
comment on column analytics.interval_daily.max_kw_at is 'Start of the first reading with max_kw.';
comment on column analytics.interval_daily.readings is
  'Readings; those with the same start count once.';
comment on column analytics.interval_daily.expected_readings is
  'Readings that fill the day: 92, 96 or 100 of 15 minutes.';
comment on column analytics.interval_daily.coverage is 'covered_seconds / day_seconds.';
comment on column analytics.interval_daily.doubtful_readings is
  'Questionable, forecast or unknown readings; those with the same start count once.';
comment on column analytics.interval_daily.resolutions is 'Lengths of all readings of the day.';
