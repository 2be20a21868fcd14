import { chmodSync, existsSync, mkdtempSync, readlinkSync, realpathSync } from 'node:fs';
import { chmod, cp, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { canEnter, type PostgresAccount } from './postgres-account.ts';
import type { PostgresBinaries } from './postgres-binaries.ts';

/**
 * Prefix of the folder for data when root starts Postgres from a folder that others cannot enter, such as
 * /root.
 */
const systemHome = '/var/lib/metersync-';

/**
 * Chooses the folder that holds the data folder of Postgres: the stack's own, or if the account cannot enter
 * that, a system folder to which a link in the stack's folder leads.
 */
export function postgresHome(dir: string, account: PostgresAccount | undefined): string {
  const data = join(dir, 'postgres');
  if (existsSync(data)) return dirname(realpathSync(data));
  if (account !== undefined) chmodSync(dir, 0o711);
  if (canEnter(account, dir)) return dir;
  const home = mkdtempSync(systemHome);
  chmodSync(home, 0o711);
  return home;
}

/** Returns the system folder to which a link in the stack's folder leads; undefined if there is none. */
export function homeElsewhere(dir: string): string | undefined {
  try {
    const home = dirname(readlinkSync(join(dir, 'postgres')));
    return new RegExp(`^${systemHome}\\w{6}$`).test(home) ? home : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Copies the programs to the data's home (60 MB) if the account cannot enter the folder where npm has put
 * them.
 */
export async function reachableBinaries(
  binaries: PostgresBinaries,
  account: PostgresAccount | undefined,
  home: string,
): Promise<PostgresBinaries> {
  const native = dirname(dirname(binaries.postgres));
  if (canEnter(account, native)) return binaries;
  const { version } = JSON.parse(await readFile(join(dirname(native), 'package.json'), 'utf8'));
  const copy = join(home, `postgres-${version}`);
  if (!existsSync(copy)) {
    await rm(`${copy}.new`, { recursive: true, force: true });
    await cp(native, `${copy}.new`, { recursive: true, verbatimSymlinks: true });
    await chmod(`${copy}.new`, 0o755);
    await rename(`${copy}.new`, copy);
  }
  const inCopy = (program: string) => join(copy, 'bin', basename(program));
  return { postgres: inCopy(binaries.postgres), initdb: inCopy(binaries.initdb) };
}
