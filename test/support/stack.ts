import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { prepareFolder } from '../../embedded/folder.ts';
import { preparePostgres } from '../../embedded/postgres.ts';
import { startEmbedded } from '../../embedded/start.ts';
import { removeAbandoned } from './temporary-root.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of database `postgres` of the run's Postgres, as superuser. */
    postgresUrl: string;
    /** Host and port of the run's Temporal. */
    temporalAddress: string;
    /** A data folder of Postgres on which no server has ever run, to copy; undefined if there is none. */
    freshPostgres: string | undefined;
  }
}

/**
 * Starts one real Postgres and Temporal for the whole run: in the first Vitest project that needs them, for
 * all of them. TEST_POSTGRES_URL names another Postgres, as superuser (`npm run test:postgres`).
 */
export default async function startStack(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (project.getProvidedContext().postgresUrl !== undefined) return undefined;
  await removeAbandoned(tmpdir());
  const dir = await mkdtemp(join(tmpdir(), 'metersync-test-'));
  // A first run fetches programs, which takes a while.
  const log = (message: string): void => project.vitest.logger.log(`stack: ${message}`);
  const given = process.env.TEST_POSTGRES_URL;
  if (given === undefined) {
    prepareFolder(dir);
    const { data } = await preparePostgres(dir, log);
    await promisify(execFile)('cp', ['-a', data, join(dir, fresh)]);
    project.vitest.provide('freshPostgres', join(dir, fresh));
    await configurePostgres(data, settingsForTests);
  }
  const stack = await startEmbedded({ dir, postgres: given === undefined, temporal: true, log });
  const postgresUrl = given ?? stack.postgres?.superuserUrl('postgres');
  if (postgresUrl === undefined || stack.temporal === undefined) throw new Error('The stack lacks a server.');
  await countStatements(postgresUrl);
  if (given === undefined) await hashPasswordOnce(postgresUrl);
  project.vitest.provide('postgresUrl', postgresUrl);
  project.vitest.provide('temporalAddress', stack.temporal.address);
  return async () => {
    await stack.stop();
    await rm(dir, { recursive: true, force: true });
  };
}

/**
 * Settings of the run's Postgres, whose data is useless afterwards: commits do not wait for the disk, and WAL
 * files are not filled. A library that is loaded at the start counts statements.
 */
export const settingsForTests: readonly string[] = [
  ...['fsync', 'synchronous_commit', 'full_page_writes', 'wal_init_zero'].map((name) => `${name} = off`),
  `shared_preload_libraries = 'pg_stat_statements'`,
  'pg_stat_statements.max = 120000',
  'pg_stat_statements.track_utility = off',
];

/** The folder with a copy of the data before its first start. Postgres takes most of a second to make it. */
const fresh = 'postgres-fresh';

/** Adds settings to a data folder on which no server runs. */
export async function configurePostgres(data: string, settings: readonly string[]): Promise<void> {
  await appendFile(join(data, 'postgresql.conf'), settings.map((line) => `${line}\n`).join(''));
}

async function countStatements(postgresUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  await client.query('create extension pg_stat_statements');
  await client.end();
}

/** Stores the superuser's password with one round of hashing, not 4096, for thousands of connections. */
async function hashPasswordOnce(postgresUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  await client.query('set scram_iterations = 1');
  await client.query(`alter role current_user password ${pg.escapeLiteral(client.password ?? '')}`);
  await client.end();
}
