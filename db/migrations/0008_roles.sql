-- Whoever writes readings may make the month that they need, and no other table.
ALTER FUNCTION metersync.ensure_interval_month(timestamptz) SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
--> statement-breakpoint
REVOKE EXECUTE ON FUNCTION metersync.ensure_interval_month(timestamptz) FROM PUBLIC;
