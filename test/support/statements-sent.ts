import pg from 'pg';
import { inject } from 'vitest';

/** How often a statement of a function ran in a database, and was planned; its text begins so. */
export async function runsAndPlansOf(url: string, text: string): Promise<{ runs: number; plans: number }[]> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  const { rows } = await client.query<{ runs: number; plans: number }>(
    `select s.calls::int as runs, s.plans::int as plans
    from pg_stat_statements s join pg_database d on d.oid = s.dbid
    where d.datname = $1 and not s.toplevel and starts_with(s.query, $2)`,
    [new URL(url).pathname.slice(1), text],
  );
  await client.end();
  return rows;
}

/** Counts the statements sent to a database so far, without those that begin and end transactions. */
export async function statementsTo(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  const { rows } = await client.query<{ calls: number }>(
    `select coalesce(sum(s.calls), 0)::int as calls
    from pg_stat_statements(showtext => false) s join pg_database d on d.oid = s.dbid
    where d.datname = $1 and s.toplevel`,
    [new URL(url).pathname.slice(1)],
  );
  await client.end();
  return rows[0]?.calls ?? 0;
}
