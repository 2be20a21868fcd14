-- floor: 1
-- The triggers that keep history look up what waits, the journal, the runs and earlier states for each
-- changed row, and a session keeps its plans. One that planned them while those tables were empty read
-- whole tables for each row from then on. They use the indexes now, whatever a table held when they
-- were planned.
do $do$
begin
  execute replace(
    pg_get_functiondef('metersync.make_history_of(text, text, text[])'::regprocedure),
    'set enable_nestloop = off',
    'set enable_seqscan = off set enable_nestloop = off'
  );
end
$do$;

--> statement-breakpoint
alter function metersync.keep_history_of_companies() set enable_seqscan = off;

--> statement-breakpoint
alter function metersync.keep_history_of_sites() set enable_seqscan = off;

--> statement-breakpoint
alter function metersync.keep_history_of_connections() set enable_seqscan = off;

--> statement-breakpoint
alter function metersync.keep_history_of_documents() set enable_seqscan = off;

--> statement-breakpoint
alter function metersync.keep_history_of_usage_data() set enable_seqscan = off;

--> statement-breakpoint
alter function metersync.keep_history_of_meters() set enable_seqscan = off;
