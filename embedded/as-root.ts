import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { childEnvironment } from './environment.ts';
import { EmbeddedError } from './failure.ts';

/** The user as which Postgres runs if this process is root, because Postgres refuses to run as root. */
export interface PostgresAccount {
  uid: number;
  gid: number;
}

export interface PostgresBinaries {
  postgres: string;
  initdb: string;
}

/** Start of the data folder's path if the account cannot enter the usual folder, for example in /root. */
const dataElsewhere = '/var/lib/metersync-';

/**
 * Finds the account of Postgres if this process is root: the owner of the data, or the system's `postgres`.
 */
export function accountFor(data: string): PostgresAccount | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(data, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const idOf = (what: string) => spawnSync('id', [what, 'postgres'], { encoding: 'utf8' }).stdout?.trim();
  if (!idOf('-u')) spawnSync('useradd', ['--system', '--user-group', '--no-create-home', 'postgres']);
  const [uid, gid] = [idOf('-u'), idOf('-g')];
  if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  throw new EmbeddedError(
    'Postgres refuses to run as root, and no system user `postgres` could be created for it.\n' +
      'Create one (`useradd --system postgres`), run as another user, or set DATABASE_URL to a Postgres of your own.',
  );
}

/** Returns the path of existing or new data that the account can enter; a link in `dir` leads to data elsewhere. */
export function reachableData(dir: string, account: PostgresAccount | undefined): string {
  const data = join(dir, 'postgres');
  if (account === undefined) return data;
  if (existsSync(data)) return realpathSync(data);
  if (canEnter(account, dir)) return data;
  const home = mkdtempSync(dataElsewhere);
  chmodSync(home, 0o711);
  rmSync(data, { force: true });
  symlinkSync(join(home, 'postgres'), data);
  return readlinkSync(data);
}

/** Returns the folder outside of `dir` that was made for its data, if any. */
export function homeElsewhere(dir: string): string | undefined {
  try {
    const home = dirname(readlinkSync(join(dir, 'postgres')));
    return new RegExp(`^${dataElsewhere}\\w{6}$`).test(home) ? home : undefined;
  } catch {
    return undefined;
  }
}

/** Returns programs that the account can run: these, or else a copy made at each start (60 MB, 0.3 s). */
export function reachableBinaries(
  binaries: PostgresBinaries,
  account: PostgresAccount | undefined,
  enterable: string,
): PostgresBinaries {
  const native = dirname(dirname(binaries.postgres));
  if (account === undefined || canEnter(account, native)) return binaries;
  const copy = join(enterable, 'programs');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  const inCopy = (program: string) => join(copy, 'bin', basename(program));
  return { postgres: inCopy(binaries.postgres), initdb: inCopy(binaries.initdb) };
}

/** Whether the account can enter a folder, which needs the right to enter every folder above it. */
function canEnter(account: PostgresAccount, path: string): boolean {
  const options = { ...account, cwd: '/', env: childEnvironment() };
  return spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', path], options).status === 0;
}
