import pg from 'pg';

/** The part of a database that API reads need: the pool, or a fixed snapshot. */
export interface Reader {
  query<R extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<{ readonly rows: R[] }>;
}

export interface Snapshot extends Reader {
  /** Resolves once the running reads have ended and the snapshot is released. */
  close(): Promise<void>;
}

/** Opens a transaction that keeps reading the database as it is at this moment. */
export async function takeSnapshot(databaseUrl: string, report: (error: Error) => void): Promise<Snapshot> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', report);
  await client.connect();
  await client.query('begin isolation level repeatable read read only');
  await client.query('select from sandbox.organizations limit 1');
  let last: Promise<unknown> = Promise.resolve();
  return {
    query<R extends pg.QueryResultRow>(config: pg.QueryConfig) {
      const mine = last.then(() => client.query<R>(config));
      last = mine.catch(() => undefined);
      return mine;
    },
    async close() {
      await last;
      await client.end();
    },
  };
}
