CREATE TABLE "metersync"."data_checks" (
	"company_id" uuid NOT NULL,
	"run_with" text NOT NULL,
	"seen_until" timestamp(6) with time zone NOT NULL,
	"today" date NOT NULL,
	"checks_off" text[] NOT NULL,
	CONSTRAINT "data_checks_company_id_run_with_pk" PRIMARY KEY("company_id","run_with")
);
--> statement-breakpoint
COMMENT ON TABLE metersync.data_checks IS 'Companies whose data was checked, one row for each kind of checks: while it is there, nothing is known to have changed since that they would see.';
COMMENT ON COLUMN metersync.data_checks.company_id IS 'The company.';
COMMENT ON COLUMN metersync.data_checks.run_with IS 'Which of ops.data_issue_checks were made: those that run with bills, connections or intervals.';
COMMENT ON COLUMN metersync.data_checks.seen_until IS 'Nothing that changed before was left out: the check began then, or it was found later that nothing had changed.';
COMMENT ON COLUMN metersync.data_checks.today IS 'The date that the check took for today.';
COMMENT ON COLUMN metersync.data_checks.checks_off IS 'Checks that were left out.';
--> statement-breakpoint
-- They take all companies at once: others of these names take one.
DROP FUNCTION IF EXISTS metersync.find_bill_issues(uuid[], date);
DROP FUNCTION IF EXISTS metersync.find_connection_issues(uuid[], date);
DROP FUNCTION IF EXISTS metersync.find_interval_issues(uuid[], date);
--> statement-breakpoint
-- What people tell of sites and units is part of what the checks compare. Who tells it need not know of the checks.
CREATE FUNCTION metersync.check_all_again() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
begin
  delete from metersync.data_checks;
  return null;
end
$$;
--> statement-breakpoint
CREATE TRIGGER check_again AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ops.site_overrides FOR EACH STATEMENT EXECUTE FUNCTION metersync.check_all_again();
CREATE TRIGGER check_again AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ops.company_overrides FOR EACH STATEMENT EXECUTE FUNCTION metersync.check_all_again();
CREATE TRIGGER check_again AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ops.unit_factors FOR EACH STATEMENT EXECUTE FUNCTION metersync.check_all_again();
--> statement-breakpoint
-- As before, in a third of the time: without a cast that depends on the session's DateStyle it is made part of the statement.
CREATE OR REPLACE FUNCTION metersync.date_of(value text) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case
    when value ~ '^[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)([T ]|$)'
        and substr(value, 1, 4) <> '0000'
      or value ~ '^([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29([T ]|$)'
    then make_date(substr(value, 1, 4)::int, substr(value, 6, 2)::int, substr(value, 9, 2)::int)
  end
$$;
