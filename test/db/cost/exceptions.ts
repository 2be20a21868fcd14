/**
 * Statements that may cost more in a large warehouse, each by a part of its text, with the reason. Some are
 * needed only by old versions of Postgres, and not by that of `npm test`.
 */
export const exceptions: readonly {
  readonly statement: string;
  readonly why: string;
  readonly onlyOldPostgres?: true;
}[] = [
  {
    statement: '"companies" where "utility"."companies"."deleted_at" is null order by',
    why: 'A run reads all companies, in batches. Before an analyse the planner cannot estimate how many are tombstoned.',
  },
  {
    statement: '"utility"."companies"."id" > $1) order by "utility"."companies"."id" limit',
    why: 'The next batch of the same run. A plan that was made when there were no companies sorts them all.',
  },
  {
    statement: 'and id > run.claimed_to order by id limit',
    why: 'The next company of a run. A plan that was made when there were no companies sorts them all.',
  },
  {
    statement: "order by coalesce(name, ''), id limit",
    why: 'A page of the console. Before the first analyse the planner expects few companies, and sorts them all.',
  },
  {
    statement: "aside = 'missing' and error_code = any(",
    why: 'A person resumes, which looks through all missing events.',
  },
  {
    statement: 'record_id = any(array(select id from same))',
    why: 'A plan of Postgres 15 that was made when few records had been refused reads all refused documents.',
    onlyOldPostgres: true,
  },
  {
    statement: 'where id = any(array(select id from named))',
    why: 'A plan of Postgres 15 or 16 that was made when there were few companies scans them.',
    onlyOldPostgres: true,
  },
];

/** Statements of a deployment that need no cost case, each by a part of its text, with the reason. */
export const notMeasured: readonly { readonly statement: string; readonly why: string }[] = [
  { statement: ';select id from metersync.journal;', why: 'This test sends it.' },
  { statement: 'select exists (select from metersync.events where', why: 'This test sends it.' },
  { statement: 'select current_setting(', why: 'It reads no table.' },
  { statement: 'select set_config(', why: 'It reads no table.' },
  { statement: 'select pg_is_in_recovery(', why: 'It reads no table.' },
  { statement: 'metersync_migrations.', why: 'The tables have a row for each migration.' },
  { statement: 'to_regclass(', why: 'The catalogue of Postgres.' },
  { statement: 'pg_class', why: 'The catalogue of Postgres.' },
  { statement: 'join pg_roles on rolname', why: 'The catalogue of Postgres.' },
  {
    statement: 'from metersync.field_catalogue left join',
    why: 'The table has a row for each field that the service sends.',
  },
];
