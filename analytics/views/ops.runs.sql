create or replace view ops.runs as
select
  run_id, company_id, resource, kind, state, started_at, finished_at,
  finished_at - started_at as took,
  pages, passes, total_said, distinct_ids, rows_inserted, rows_changed, rows_unchanged,
  rows_tombstoned, rows_rejected, rows_missed, error,
  not exists (
    select
    from metersync.run_companies chosen
    where chosen.run_id = runs.run_id
  ) as of_all,
  values_unreadable
from metersync.runs;
comment on view ops.runs is 'One row for each run, and one for each company and resource in it.';
comment on column ops.runs.of_all is 'Whether it read all companies.';
select metersync.copy_comments('metersync.runs', 'ops.runs');
