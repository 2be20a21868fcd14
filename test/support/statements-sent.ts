import pg from 'pg';
import { inject } from 'vitest';

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
