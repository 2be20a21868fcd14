import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startEmbedded } from '../../embedded/start.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of database `postgres` of the run's Postgres, as superuser. */
    postgresUrl: string;
    /** Host and port of the run's Temporal. */
    temporalAddress: string;
  }
}

/** One real Postgres and one real Temporal for the whole run, on data that is gone after it. */
export default async function startStack(project: TestProject): Promise<() => Promise<void>> {
  const dir = await mkdtemp(join(tmpdir(), 'metersync-test-'));
  const stack = await startEmbedded({
    dir,
    postgres: true,
    temporal: true,
    binDir: projectBinDir(),
    // What a first run fetches takes a while.
    log: (message) => project.vitest.logger.log(`stack: ${message}`),
  });
  if (stack.postgres === undefined || stack.temporal === undefined)
    throw new Error('The stack lacks a server.');
  project.provide('postgresUrl', stack.postgres.url('postgres'));
  project.provide('temporalAddress', stack.temporal.address);
  return async () => {
    await stack.stop();
    await rm(dir, { recursive: true, force: true });
  };
}

/** The checkout's own cache of the Temporal CLI, so that no run fetches it again. */
export function projectBinDir(): string {
  return resolve(import.meta.dirname, '../../.metersync/bin');
}
