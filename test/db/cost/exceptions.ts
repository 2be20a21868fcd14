/** Statements that may cost more in a large warehouse, each by a part of its text and with the reason. */
export const exceptions: readonly { readonly statement: string; readonly why: string }[] = [
  {
    statement: 'order by s.kind, s.due_at limit',
    why: 'It reads up to the 500 longest due rows; a small warehouse has fewer.',
  },
  {
    statement: '"companies" where "utility"."companies"."deleted_at" is null order by',
    why: 'A run reads all companies, in batches. The planner cannot estimate the tombstoned ones before an analyse.',
  },
  {
    statement: '"utility"."companies"."id" > $1) order by "utility"."companies"."id" limit',
    why: 'The next batch of the same run. A plan from when there were no companies sorts them all.',
  },
  {
    statement: 'order by coalesce("utility"."companies"."name"',
    why: 'A page of the console. Before the first analyse the planner takes the companies for few, and sorts all.',
  },
];

/** Statements that a deployment sends without a case, each by a part of its text and with the reason. */
export const notMeasured: readonly { readonly statement: string; readonly why: string }[] = [
  { statement: ';select id from metersync.journal;', why: 'This test sends it.' },
  { statement: 'select exists (select from metersync.events where', why: 'This test sends it.' },
  { statement: 'update metersync.catch_ups set awake = ', why: 'A table of three rows.' },
  { statement: 'select current_setting(', why: 'It reads no table.' },
  { statement: 'select set_config(', why: 'It reads no table.' },
  { statement: 'select pg_is_in_recovery(', why: 'It reads no table.' },
  { statement: 'metersync_migrations.', why: 'A row for each migration.' },
  { statement: 'to_regclass(', why: 'The catalogue of Postgres.' },
  { statement: 'pg_class', why: 'The catalogue of Postgres.' },
  {
    statement: 'from metersync.field_catalogue left join',
    why: 'A row for each field that the service sends.',
  },
];
