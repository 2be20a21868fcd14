import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** A database on the run's Postgres. */
export interface TestDatabase {
  url: string;
  /** Removes it, and ends remaining connections. */
  drop(): Promise<void>;
}

/**
 * Creates a new database for a test file or a test; `prefix` identifies it in `\l`. Postgres copies the files
 * of the template. If it copied through the WAL instead, copies would be most of what it writes during a run.
 */
export async function createDatabase(prefix = 'test', template = 'template1'): Promise<TestDatabase> {
  const name = `${prefix}_${randomBytes(6).toString('hex')}`;
  await administer(
    `create database ${pg.escapeIdentifier(name)} template ${pg.escapeIdentifier(template)} strategy file_copy`,
  );
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      // A test that counts its statements reads the statistics of every database in the run.
      await administer(
        `select pg_stat_statements_reset(dbid => oid) from pg_database where datname = ${pg.escapeLiteral(name)}`,
      );
      await administer(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
    },
  };
}

let administrators: pg.Pool | undefined;

/** Uses one connection for all databases that a process creates: a new one takes 5 ms of processor time. */
async function administer(statement: string): Promise<void> {
  administrators ??= openAdministrators();
  await administrators.query(statement);
}

function openAdministrators(): pg.Pool {
  const connectionString = inject('postgresUrl');
  const pool = new pg.Pool({ connectionString, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true });
  // A test may end all connections; the next statement opens one.
  pool.on('error', () => {});
  return pool;
}
