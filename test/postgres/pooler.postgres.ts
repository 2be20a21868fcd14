import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { expect } from 'vitest';
import { accepts } from '../../embedded/temporal.ts';
import { fault } from '../faults/fault.ts';
import { createPart, type Part } from '../faults/part.ts';
import type { PostgresPart } from '../faults/postgres-part.ts';
import { launchServer } from '../faults/server-process.ts';
import { pgbouncer } from '../support/debian.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { administer, may, withPostgres } from './warehouse.ts';

/** Settings of the role instead of those that the pooler drops, as in docs/running.md. */
const roleSettings = [
  "timezone = 'UTC'",
  'jit = off',
  "lock_timeout = '30s'",
  "default_transaction_isolation = 'read committed'",
  'search_path = pg_catalog, pg_temp',
];

fault<Pooler>({
  name: 'P5',
  title: 'PgBouncer in transaction mode between worker and Postgres',
  eachSeed: true,
  alarms: { may },
  around: (work) =>
    withPostgres({}, async (postgres) => {
      const databaseUrl = await postgres.users.ensureDatabase('metersync', { createRoles: true });
      const pooler = await startPooler(postgres, databaseUrl);
      try {
        const between = { workerAndPostgres: async () => pooler.url };
        return await work({ postgres: { part: postgres.part, databaseUrl }, between }, pooler);
      } finally {
        await pooler.stop();
      }
    }),
  backfill: 'during',
  loadSeconds: 20,
  strike: async () => {},
  check: async (_figures, _rig, pooler) => {
    const transactions = await pooler.transactions();
    expect(transactions).toBeGreaterThan(1_000);
    return `${transactions.toLocaleString('en')} transactions over at most ${sessions} sessions`;
  },
});

interface Pooler {
  /** The URL of the warehouse through the pooler. */
  readonly url: string;
  transactions(): Promise<number>;
  stop(): Promise<void>;
}

/** The number of sessions. A worker has more connections, so its transactions change sessions. */
const sessions = 8;

async function startPooler({ users, port, account }: PostgresPart, url: string): Promise<Pooler> {
  const [program, folder, ownPort] = [await pgbouncer(), await temporaryFolder(), await freePort()];
  const { username, password, pathname } = new URL(url);
  const role = pg.escapeIdentifier(decodeURIComponent(username));
  await administer(
    users.superuserUrl('postgres'),
    roleSettings.map((setting) => `alter role ${role} set ${setting}`),
  );
  const file = join(folder.path, 'pgbouncer.ini');
  const passwords = join(folder.path, 'users.txt');
  await writeFile(passwords, `"${username}" "${password}"\n"pooler" "${password}"\n`);
  await writeFile(
    file,
    `[databases]
* = host=127.0.0.1 port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${passwords}
stats_users = pooler
pool_mode = transaction
default_pool_size = ${sessions}
ignore_startup_parameters = options
`,
  );
  if (account !== undefined)
    for (const path of [folder.path, file, passwords]) await chown(path, account.uid, account.gid);
  const logFile = join(folder.path, 'pgbouncer.log');
  const part: Part = createPart('pgbouncer', () =>
    launchServer({ ...program, args: [file], logFile, ...(account && { user: account }) }, () =>
      until('PgBouncer listens', () => accepts(`127.0.0.1:${ownPort}`)),
    ),
  );
  await part.start();
  const through = (user: string, database: string) =>
    `postgres://${user}:${password}@127.0.0.1:${ownPort}${database}`;
  return {
    url: through(username, pathname),
    transactions: async () => {
      const client = new pg.Client({ connectionString: through('pooler', '/pgbouncer') });
      await client.connect();
      const { rows } = await client.query<{ database: string; total_xact_count: string }>('show stats');
      await client.end();
      const own = rows.find(({ database }) => `/${database}` === pathname);
      return Number(own?.total_xact_count);
    },
    stop: async () => {
      await part.stop('SIGKILL');
      await folder.remove();
    },
  };
}
