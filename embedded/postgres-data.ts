import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { appendFile, chown, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment } from './environment.ts';
import { EmbeddedError } from './failure.ts';
import type { PostgresAccount } from './postgres-account.ts';
import { commandLine, identify } from './processes.ts';

export const postgresMajor = 18;
export const postgresSuperuser = 'postgres';

/**
 * Settings for a warehouse of some gigabytes on a machine with two cores and a few gigabytes of memory. Those
 * that make a commit durable are stated. All are written to postgresql.conf, so `alter system` overrides
 * them.
 */
const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  work_mem: '16MB',
  maintenance_work_mem: '128MB',
  // Bulk loads write much WAL: these mean fewer checkpoints and compressed page images.
  max_wal_size: '2GB',
  min_wal_size: '256MB',
  wal_compression: 'on',
  // Assumes a solid-state disk.
  random_page_cost: '1.1',
  // Queries are many and short: compiling them costs more than it gains.
  jit: 'off',
  max_connections: '200',
  timezone: 'UTC',
  log_timezone: 'UTC',
} as const;

/** Arguments of initdb for the same order and case rules on every machine, independent of its locales. */
export const builtinLocale: readonly string[] = [
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
];

/** Makes the data folder, completely or not at all; `dir/postgres` then leads to it. Measured: 0.7 s. */
export async function createPostgresData(options: {
  dir: string;
  home: string;
  initdb: string;
  locale: readonly string[];
  account: PostgresAccount | undefined;
}): Promise<void> {
  const { dir, home, initdb, locale, account } = options;
  await removeUnfinished(home);
  const fresh = await mkdtemp(join(home, unfinished));
  const passwordFile = join(home, 'postgres-password.new');
  const password = randomBytes(12).toString('hex');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (account !== undefined) {
    for (const path of [fresh, passwordFile]) await chown(path, account.uid, account.gid);
  }
  try {
    await runInitdb(initdb, { data: fresh, passwordFile, locale, account });
  } finally {
    await rm(passwordFile, { force: true });
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  await appendFile(join(fresh, 'postgresql.conf'), lines.join(''));
  await writeFile(join(fresh, passwordName), password, { mode: 0o600 });
  await rename(fresh, join(home, 'postgres'));
  if (home !== dir) await symlink(join(home, 'postgres'), join(dir, 'postgres'));
}

/** Reads the superuser's password, which is kept with the data, as neither is of use without the other. */
export function readPostgresPassword(data: string): string {
  return readFileSync(join(data, passwordName), 'utf8');
}

/**
 * Checks the data.
 * @throws EmbeddedError that says what to do when it is of another version or user, or in use
 */
export function checkPostgresData(data: string): void {
  const major = readVersion(data);
  if (major !== String(postgresMajor)) {
    throw new EmbeddedError(
      `${data} was written by Postgres ${major}, and this is Postgres ${postgresMajor}, which cannot read it.\n` +
        'Run the version of metersync that wrote it, or move the folder away: a backfill fills a new one.',
    );
  }
  const pidFile = join(data, 'postmaster.pid');
  const pid = existsSync(pidFile) ? Number.parseInt(readFileSync(pidFile, 'utf8'), 10) : 0;
  if (pid <= 0 || identify(pid) === undefined) return;
  if (!isPostgresOn(data, pid)) {
    // A crash left the file, and another program has the pid now: Postgres would take it for its own.
    rmSync(pidFile);
    return;
  }
  throw new EmbeddedError(
    `Another Postgres, process ${pid}, runs on ${data}, and it was not started by this program.\n` +
      `Stop it (\`kill -INT ${pid}\`), or give another folder.`,
  );
}

/** Whether a process is a Postgres on this data: it works in its folder, which not all systems show. */
function isPostgresOn(data: string, pid: number): boolean {
  const folder = statSync(data);
  try {
    const works = statSync(`/proc/${pid}/cwd`);
    return works.dev === folder.dev && works.ino === folder.ino;
  } catch {
    return commandLine(pid).includes('postgres');
  }
}

/** Prefix of folders that initdb fills. Each start has its own: initdb outlives a start that is killed. */
const unfinished = 'postgres.new-';

async function removeUnfinished(home: string): Promise<void> {
  const names = (await readdir(home)).filter((name) => name.startsWith(unfinished));
  // Retries: files may still come.
  for (const name of names) await rm(join(home, name), { recursive: true, force: true, maxRetries: 5 });
}

const passwordName = 'metersync-password';

async function runInitdb(
  initdb: string,
  options: {
    data: string;
    passwordFile: string;
    locale: readonly string[];
    account: PostgresAccount | undefined;
  },
): Promise<void> {
  const { data, passwordFile, locale, account } = options;
  const args = [
    `--pgdata=${data}`,
    `--username=${postgresSuperuser}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    ...locale,
    '--no-instructions',
  ];
  try {
    await promisify(execFile)(initdb, args, { ...account, cwd: '/', env: childEnvironment({ LC_ALL: 'C' }) });
  } catch (error) {
    const output = (error as { stderr?: string }).stderr || (error as Error).message;
    // As in a container that runs under any user id.
    const isNameless = output.includes('could not look up effective user ID');
    const todo = isNameless
      ? '\nGive that user id a name in /etc/passwd, run as another user, or set DATABASE_URL to a Postgres of your own.'
      : '';
    throw new EmbeddedError(`Postgres could not make its data folder ${data}:\n${output.trim()}${todo}`);
  }
}

function readVersion(data: string): string {
  try {
    return readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === 'EACCES'
        ? 'belongs to another user. Run as that user'
        : 'is not a data folder of Postgres';
    throw new EmbeddedError(`${data} ${why}, or move it away: a backfill fills a new one.`);
  }
}
