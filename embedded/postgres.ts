import pg from 'pg';
import { bounds } from './bounds.ts';
import type { Addresses } from './running.ts';

/** The embedded Postgres, as its users see it. */
export interface EmbeddedPostgres {
  /** The address of a database, with the superuser that owns everything. */
  url(database: string): string;
  /** Creates the database unless it is there; returns its address. */
  ensureDatabase(name: string): Promise<string>;
}

type PostgresAddress = NonNullable<Addresses['postgres']>;

/** What users get to hold of the Postgres that runs at this address. */
export function embeddedPostgres(address: PostgresAddress): EmbeddedPostgres {
  const url = (database: string) => postgresUrl(address, database);
  return {
    url,
    ensureDatabase: async (name) => {
      const client = new pg.Client({ connectionString: url('postgres') });
      await client.connect();
      try {
        await client.query(`create database ${pg.escapeIdentifier(name)}`).catch(unlessThere);
      } finally {
        await client.end();
      }
      return url(name);
    },
  };
}

/** Whether Postgres answers a query at this address. */
export async function postgresAnswers(address: PostgresAddress): Promise<boolean> {
  const client = new pg.Client({
    connectionString: postgresUrl(address, 'postgres'),
    connectionTimeoutMillis: bounds.answerMs,
    query_timeout: bounds.answerMs,
  });
  // A server that goes away while we look is an answer too.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

function postgresUrl({ port, user, password }: PostgresAddress, database: string): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

/** 42P04: it exists; 23505: another connection created it at the same moment. */
function unlessThere(error: Error & { code?: string }): void {
  if (error.code !== '42P04' && error.code !== '23505') throw error;
}
