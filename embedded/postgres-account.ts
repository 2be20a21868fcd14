import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { childEnvironment } from './environment.ts';
import { EmbeddedError } from './failure.ts';

/** The user as whom Postgres runs when we are root, as whom it refuses to run. */
export interface PostgresAccount {
  uid: number;
  gid: number;
}

/**
 * Finds the account of Postgres; undefined unless we are root. It is the owner of existing data, otherwise
 * the system's `postgres`, which is created if absent, as any package of Postgres does.
 */
export function postgresAccount(dataDir: string): PostgresAccount | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(dataDir, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account = findAccount('postgres') ?? createAccount('postgres');
  if (account !== undefined) return account;
  throw new EmbeddedError(
    'Postgres refuses to run as root, and no system user `postgres` could be created for it.\n' +
      'Create one (`useradd --system postgres`), run as another user, or set DATABASE_URL to a Postgres of your own.',
  );
}

/** Whether the account can enter a folder, which also needs the right to enter every folder above it. */
export function canEnter(account: PostgresAccount | undefined, folder: string): boolean {
  if (account === undefined) return true;
  const options = { ...account, cwd: '/', env: childEnvironment() };
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], options).status === 0;
}

function findAccount(name: string): PostgresAccount | undefined {
  const [uid, gid] = ['-u', '-g'].map((what) => {
    const { status, stdout } = spawnSync('id', [what, name], { encoding: 'utf8' });
    return status === 0 ? Number(stdout) : undefined;
  });
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}

function createAccount(name: string): PostgresAccount | undefined {
  spawnSync('groupadd', ['--system', name]);
  spawnSync('useradd', ['--system', '--gid', name, '--no-create-home', '--shell', '/usr/sbin/nologin', name]);
  return findAccount(name);
}
