import pg from 'pg';
import { inject } from 'vitest';

/** Asks the run's Postgres about a database's statements; $1 is its name, `more` are $2 and so on. */
async function statistics<Row extends pg.QueryResultRow>(
  text: string,
  url: string,
  ...more: readonly string[]
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  const { rows } = await client.query<Row>(text, [new URL(url).pathname.slice(1), ...more]);
  await client.end();
  return rows;
}

/** How often statements of functions that begin with `text` ran in a database, and were planned. */
export const runsAndPlansOf = (url: string, text: string): Promise<{ runs: number; plans: number }[]> =>
  statistics(
    `select s.calls::int as runs, s.plans::int as plans
    from pg_stat_statements s join pg_database d on d.oid = s.dbid
    where d.datname = $1 and not s.toplevel and starts_with(s.query, $2)`,
    url,
    text,
  );

/** Counts the statements sent to a database so far, without those that begin and end transactions. */
export async function statementsTo(url: string): Promise<number> {
  const [row] = await statistics<{ calls: number }>(
    `select coalesce(sum(s.calls), 0)::int as calls
    from pg_stat_statements(showtext => false) s join pg_database d on d.oid = s.dbid
    where d.datname = $1 and s.toplevel`,
    url,
  );
  return row?.calls ?? 0;
}

/** Reads the texts of the statements sent to a database. */
export async function statementsOf(url: string): Promise<Set<string>> {
  const sent = await statistics<{ query: string }>(
    `select query
    from pg_stat_statements s join pg_database d on d.oid = s.dbid
    where d.datname = $1 and s.toplevel`,
    url,
  );
  return new Set(sent.map(({ query }) => query.replaceAll('"', '').replace(/\s+/g, ' ').trim()));
}
