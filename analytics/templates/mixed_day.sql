-- The sum of a day c whose readings have several lengths. Each moment counts from the shortest
-- reading that covers it. A reading that counts for a part of its time counts in proportion.
with bounds as (
  select day_start, day_end
  from metersync.day_start(c.local_date, c.time_zone) as day_start
    cross join metersync.day_start(c.local_date + 1, c.time_zone) as day_end
), starts as (
  select
    i.granularity_seconds as length,
    i.start_at,
    i.start_at >= b.day_start as starts_here,
    tstzrange(
      greatest(i.start_at, b.day_start),
      least(i.start_at + i.granularity_seconds * interval '1 second', b.day_end)
    ) as span,
    sum(metersync.amount(i.usage)) as amount,
    bool_or(analytics.standard_quality(i.quality) = 'estimated') as has_estimated,
    bool_or(
      analytics.standard_quality(i.quality) in ('questionable', 'forecast', 'unknown')
    ) as has_doubtful
  from bounds b
    join utility.intervals i on i.meter_id = c.meter_id
      and i.usage_units = any(c.spellings)
      and i.start_at > b.day_start
        - (select max(resolution) from unnest(c.resolutions) as resolution) * interval '1 second'
      and i.start_at < b.day_end
      and i.start_at + i.granularity_seconds * interval '1 second' > b.day_start
  group by i.granularity_seconds, i.start_at, b.day_start, b.day_end
), lengths as (
  select
    length,
    coalesce(range_agg(span) filter (where amount is not null), '{}') as spans
  from starts
  group by length
),
-- The time that each length counts for: the time that no shorter reading covers.
own_times as (
  select
    length,
    spans - coalesce(
      range_agg(spans) over (order by length rows between unbounded preceding and 1 preceding),
      '{}'
    ) as times
  from lengths
), counted as (
  select s.*, p.seconds, p.amount_here
  from starts s
    join own_times o on o.length = s.length
    cross join lateral (
      select
        coalesce(sum(through - before), 0) as seconds,
        sum(
          metersync.share(s.amount, before, through, s.length, greatest(scale(s.amount), 6))
        ) as amount_here
      from unnest(o.times * tstzmultirange(s.span)) as part
        cross join lateral (
          select
            extract(epoch from lower(part) - s.start_at)::integer as before,
            extract(epoch from upper(part) - s.start_at)::integer as through
        ) seconds
    ) p
  where s.amount is null
    or p.seconds > 0
), summed_times as (
  select
    o.length,
    coalesce(sum(extract(epoch from upper(part) - lower(part))), 0) as seconds
  from own_times o
    left join lateral unnest(o.times) as part on true
  group by o.length
), main_length as (select length from summed_times order by seconds desc, length limit 1)
select
  (select length from main_length) as mixed_granularity,
  sum(amount_here) as mixed_usage,
  count(*) filter (where starts_here)::integer as mixed_readings,
  count(*) filter (where starts_here and has_estimated)::integer as mixed_estimated,
  count(*) filter (where starts_here and has_doubtful)::integer as mixed_doubtful,
  (select sum(seconds) from summed_times) as mixed_covered,
  (
    select round(sum(t.seconds / t.length) + (c.day_seconds - sum(t.seconds)) / min(m.length), 2)
    from summed_times t
      cross join main_length m
  ) as mixed_expected,
  max(
    array[
      case c.dimension when 'energy' then amount * 3600 / length else amount end,
      -extract(epoch from start_at)
    ]
  ) filter (where amount is not null) as mixed_highest
from counted
where c.is_mixed
having count(*) > 0
offset 0
