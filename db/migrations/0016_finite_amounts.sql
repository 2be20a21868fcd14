-- Amounts that are none and readings that end where they begin, which versions before wrote: they are with what is refused,
-- as they would be now.
WITH wrong AS (
  DELETE FROM utility.intervals WHERE granularity_seconds <= 0 OR NOT (usage > '-Infinity' AND usage < 'Infinity') RETURNING *
)
INSERT INTO metersync.rejected_records (resource, record_id, error, record)
SELECT 'intervals', meter_id || '@' || to_char(start_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
  CASE WHEN granularity_seconds <= 0 THEN 'the reading ends where it begins, or before' ELSE 'the usage is no finite number' END,
  to_jsonb(wrong)::text
FROM wrong ORDER BY meter_id, start_at
ON CONFLICT (resource, record_id) DO NOTHING;
--> statement-breakpoint
INSERT INTO metersync.rejected_records (resource, record_id, company_id, error, record)
SELECT 'usageData', id::text, company_id, 'the usage is no finite number', coalesce(raw, '{}')::text
FROM utility.usage_data WHERE NOT (usage > '-Infinity' AND usage < 'Infinity') ORDER BY id
ON CONFLICT (resource, record_id) DO NOTHING;
--> statement-breakpoint
UPDATE utility.usage_data SET usage = NULL WHERE NOT (usage > '-Infinity' AND usage < 'Infinity');
--> statement-breakpoint
ALTER TABLE "utility"."intervals" ADD CONSTRAINT "intervals_usage_is_finite" CHECK (usage > '-Infinity' and usage < 'Infinity'),
  ADD CONSTRAINT "intervals_granularity_is_positive" CHECK (granularity_seconds > 0);--> statement-breakpoint
ALTER TABLE "utility"."usage_data" ADD CONSTRAINT "usage_data_usage_is_finite" CHECK (usage > '-Infinity' and usage < 'Infinity');
