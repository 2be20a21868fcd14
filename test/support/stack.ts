import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { startEmbedded } from '../../embedded/start.ts';
import { removeAbandoned } from './temporary-root.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of database `postgres` of the run's Postgres, as superuser. */
    postgresUrl: string;
    /** Host and port of the run's Temporal. */
    temporalAddress: string;
  }
}

/**
 * Starts one real Postgres and one real Temporal for the whole run, on data that is removed after it. The first
 * kind of tests that needs them starts them, and provides them to the others.
 */
export default async function startStack(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (project.getProvidedContext().postgresUrl !== undefined) return undefined;
  await removeAbandoned(tmpdir());
  const dir = await mkdtemp(join(tmpdir(), 'metersync-test-'));
  const binDir = projectBinDir();
  // A first run fetches programs, which takes a while.
  const log = (message: string): void => project.vitest.logger.log(`stack: ${message}`);
  const first = await startEmbedded({ dir, postgres: true, temporal: false, binDir, log });
  await setUp(first.postgres?.superuserUrl('postgres') ?? '');
  await first.stop();
  const stack = await startEmbedded({ dir, postgres: true, temporal: true, binDir, log });
  if (stack.postgres === undefined || stack.temporal === undefined)
    throw new Error('The stack lacks a server.');
  const postgresUrl = stack.postgres.superuserUrl('postgres');
  await countStatements(postgresUrl);
  project.vitest.provide('postgresUrl', postgresUrl);
  project.vitest.provide('temporalAddress', stack.temporal.address);
  return async () => {
    await stack.stop();
    await rm(dir, { recursive: true, force: true });
  };
}

/**
 * Sets up the run's Postgres. Its data is of no use after the run and no test kills it: commits need not wait
 * for the disk, nor are files of the WAL filled with zeros. Statements are counted, which is a setting of
 * Postgres's start.
 */
async function setUp(postgresUrl: string): Promise<void> {
  await administer(postgresUrl, [
    ...['fsync', 'synchronous_commit', 'full_page_writes'].map((name) => `alter system set ${name} = off`),
    'alter system set wal_init_zero = off',
    `alter system set shared_preload_libraries = 'pg_stat_statements'`,
    'alter system set pg_stat_statements.max = 20000',
    'alter system set pg_stat_statements.track_utility = off',
  ]);
}

async function countStatements(postgresUrl: string): Promise<void> {
  await administer(postgresUrl, ['create extension pg_stat_statements']);
}

async function administer(postgresUrl: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

/** Returns the checkout's own cache of the Temporal CLI, so that no run fetches it again. */
export function projectBinDir(): string {
  return resolve(import.meta.dirname, '../../.metersync/bin');
}
