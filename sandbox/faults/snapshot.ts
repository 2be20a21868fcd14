import pg from 'pg';

/** What an API read needs of a database: the pool, or a snapshot that stands still. */
export interface Reader {
  query<R extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<{ readonly rows: R[] }>;
}

export interface Snapshot extends Reader {
  /** Resolves when the reads under way have ended and the snapshot is given up. */
  close(): Promise<void>;
}

/** Reads as of this moment, however long it is kept: a transaction that sees nothing newer. */
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
