import { existsSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { postgresAccount } from './postgres-account.ts';
import { findPostgresBinaries } from './postgres-binaries.ts';
import {
  checkPostgresData,
  createPostgresData,
  postgresSuperuser,
  readPostgresPassword,
} from './postgres-data.ts';
import { postgresHome, reachableBinaries } from './postgres-home.ts';
import type { Addresses } from './running.ts';
import type { ServerCommand } from './servers.ts';

/** Makes the data folder when there is none, checks it when there is one, and tells how to run Postgres on it. */
export async function preparePostgres(options: {
  dir: string;
  port: number;
  log: (message: string) => void;
}): Promise<{ server: ServerCommand; address: NonNullable<Addresses['postgres']> }> {
  const { dir, port, log } = options;
  const link = join(dir, 'postgres');
  const account = postgresAccount(link);
  const home = postgresHome(dir, account);
  const { postgres, initdb } = await reachableBinaries(await findPostgresBinaries(), account, home);
  if (existsSync(link)) {
    checkPostgresData(link);
  } else {
    log(home === dir ? 'making a Postgres data folder' : `making a Postgres data folder in ${home}`);
    // A link that leads nowhere: the data was deleted.
    rmSync(link, { force: true });
    await createPostgresData({ dir, home, initdb, account });
  }
  const data = realpathSync(link);
  return {
    server: {
      name: 'postgres',
      command: postgres,
      args: ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', ''],
      cwd: '/',
      env: { LC_ALL: 'C' },
      ...(account && { user: account }),
      logFile: join(dir, 'logs', 'postgres.log'),
    },
    address: { port, user: postgresSuperuser, password: readPostgresPassword(data) },
  };
}
