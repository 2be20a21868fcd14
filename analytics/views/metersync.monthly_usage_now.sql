create or replace view metersync.monthly_usage_now as
{{monthly_usage usage="metersync.counted_usage"}};
comment on view metersync.monthly_usage_now is 'Usage by month, computed from the records.';
