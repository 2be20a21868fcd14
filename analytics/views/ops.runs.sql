create or replace view ops.runs as
select
  run_id,
  company_id,
  resource,
  kind,
  state,
  started_at,
  finished_at,
  finished_at - started_at as took,
  pages,
  passes,
  total_said,
  distinct_ids,
  rows_inserted,
  rows_changed,
  rows_unchanged,
  rows_tombstoned,
  rows_rejected,
  rows_missed,
  error
from metersync.runs;

comment on view ops.runs is
  'Backfills: one row for the run, one for each company and resource in it.';

select
  metersync.comment_columns(
    'ops.runs',
    jsonb_build_object('took', 'From start to end.') || (
      select jsonb_object_agg(a.attname, col_description(a.attrelid, a.attnum))
      from pg_attribute a
      where a.attrelid = 'metersync.runs'::regclass
        and a.attname in (
          'run_id',
          'company_id',
          'resource',
          'kind',
          'state',
          'started_at',
          'finished_at',
          'pages',
          'passes',
          'total_said',
          'distinct_ids',
          'rows_inserted',
          'rows_changed',
          'rows_unchanged',
          'rows_tombstoned',
          'rows_rejected',
          'rows_missed',
          'error'
        )
    )
  );
