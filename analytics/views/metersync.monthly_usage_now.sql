-- The template templates/monthly_usage.sql, over all usage that counts. metersync.monthly_usage
-- stores the same months; this view computes them at each query, to compare them with the stored.
create or replace view metersync.monthly_usage_now as
{{monthly_usage usage="metersync.counted_usage"}};
comment on view metersync.monthly_usage_now is
  'Usage by month, computed when it is asked for; metersync.monthly_usage has it stored.';
